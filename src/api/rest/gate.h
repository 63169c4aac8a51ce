// The first steps of the gate (protocol section 5): who asks, and whether they may, now. By the
// header alone, from memory, and before anything is looked up: a known key opens nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "http/message.h"
#include "model/token.h"
#include "service/authenticator.h"
#include "service/rate_limiter.h"

namespace vmonce::rest {

// What a route asks of who calls it.
enum class Access {
  kOpen,    // Nothing: probes, and the contract itself.
  kViewer,  // At least this role.
  kMember,
  kAdmin,
  kMetrics,  // Those who read the metrics, and the operator.
};

// Used by one thread, the io thread. What is borrowed outlives it.
class Gate {
 public:
  Gate(const service::Authenticator& authenticator, Clock& clock, Logger& logger,
       service::Rate rate);

  // Fills request.principal with the caller, or answers 401, 403, 429, or 503 while nobody can be
  // told from a stranger. A token has its rate; so has, for what is answered with 401, an address.
  // Who needs no token has none. Precondition: the route is not open.
  std::optional<http::Response> Admit(Access access, http::Request& request);

 private:
  http::Response RefuseStranger(const model::Problem& problem, const http::Request& request,
                                bool has_credentials);

  const service::Authenticator& authenticator_;
  Clock& clock_;
  Logger& logger_;
  service::RateLimiter<model::TokenId, UuidHash> tokens_;
  service::RateLimiter<std::string> strangers_;
};

// The token of `Authorization: Bearer TOKEN` (RFC 6750 section 2.1); empty for credentials of
// another kind, for several, and for none at all in the header. Absent without the header.
std::optional<std::string_view> BearerToken(const http::HeaderList& headers);

// Precondition: Admit() let the request through.
const service::Caller& CallerOf(const http::Request& request);

}  // namespace vmonce::rest
