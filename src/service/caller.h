// Who asks, as authentication found out.
#pragma once

#include <optional>
#include <string>

#include "model/token.h"

namespace vmonce::service {

struct Caller {
  // From the credentials, never from the request.
  model::ProjectId project;
  model::Role role = model::Role::kAdmin;
  // Absent where no token is required: who reaches the loopback address is the operator.
  std::optional<model::TokenId> token;
};

// For logs and timelines: the token's id.
inline std::string NameOf(const Caller& caller) {
  return caller.token ? ToString(*caller.token) : std::string("none");
}

}  // namespace vmonce::service
