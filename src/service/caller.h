// Who asks, as authentication found out.
#pragma once

#include <optional>

#include "model/token.h"

namespace vmonce::service {

struct Caller {
  // From the credentials, never from the request.
  model::ProjectId project;
  model::Role role = model::Role::kAdmin;
  // Absent where no token is required: who reaches the loopback address is the operator.
  std::optional<model::TokenId> token;
};

}  // namespace vmonce::service
