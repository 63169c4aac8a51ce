// The first steps of the gate (protocol section 5): who asks, and whether they may, now. By the
// header alone, from memory, and before anything is looked up: a known key opens nothing.
#pragma once

#include <optional>
#include <string_view>

#include "http/message.h"
#include "model/token.h"
#include "service/authenticator.h"

namespace vmonce::rest {

// What a route asks of who calls it.
enum class Access {
  kOpen,    // Nothing: probes, and the contract itself.
  kViewer,  // At least this role.
  kMember,
  kAdmin,
};

// Fills request.principal with the caller, or answers 401, 403, or 503 while nobody can be told
// from a stranger. Precondition: the route is not open.
std::optional<http::Response> Admit(const service::Authenticator& authenticator, Access access,
                                    http::Request& request);

// The token of `Authorization: Bearer TOKEN` (RFC 6750 section 2.1); empty for credentials of
// another kind, for several, and for none at all in the header. Absent without the header.
std::optional<std::string_view> BearerToken(const http::HeaderList& headers);

// Precondition: Admit() let the request through.
const service::Caller& CallerOf(const http::Request& request);

}  // namespace vmonce::rest
