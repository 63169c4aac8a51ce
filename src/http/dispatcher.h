// From a whole request to its handler, on the io thread or on the pool, or to a refusal. Knows no
// socket.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "http/handler.h"
#include "http/pool.h"
#include "http/problem.h"
#include "http/router.h"
#include "http/tls_context.h"

namespace vmonce::http {

// Labels for what no route's template names.
inline constexpr std::string_view kUnmatchedRoute = "(unmatched)";
inline constexpr std::string_view kMalformedRequest = "(malformed)";

// The method where it is a registered one, else "other": what clients make up must not become
// metrics.
std::string_view MethodLabel(std::string_view method);

// Used by the io thread alone.
class Dispatcher final {
 public:
  // Names as in host.h. All arguments but the first two outlive this.
  Dispatcher(Router router, std::vector<std::string> allowed_hosts, BlockingPool& pool,
             Logger& logger);

  struct Plan {
    // Null when there is an answer already.
    const Route* route = nullptr;
    // The template, or kUnmatchedRoute. Valid as long as the dispatcher.
    std::string_view route_label = kUnmatchedRoute;
    // A refusal, or the answer to OPTIONS.
    std::optional<Response> answer;
  };
  // Where the request came in. It is served under two more names than the allowed ones, since a
  // page of an attacker's name can carry neither (host.h): the address that was connected to, which
  // needs no name to be resolved, and what the certificate was made for, which the client's browser
  // has checked.
  struct Arrival {
    // As HostName gives it.
    std::string_view local_host;
    // Null when it came in clear.
    const TlsContext* tls = nullptr;
  };
  // Decides by the header alone, and fills request.path_params and request.principal: wrong host,
  // foreign origin on a method that changes something, no such route, no such method, not admitted;
  // and what OPTIONS asks. No answer tells a browser that a page of another origin may do more
  // (CORS).
  Plan Decide(Request& request, const Arrival& arrival) const;

  // Runs or queues the handler of `route`. What it throws is logged and answered with 500.
  void Run(const Route& route, Request request, Responder responder);

 private:
  bool Serves(std::string_view authority, const Arrival& arrival) const;

  const Router router_;
  const std::vector<std::string> allowed_hosts_;
  BlockingPool& pool_;
  Logger& logger_;
};

}  // namespace vmonce::http
