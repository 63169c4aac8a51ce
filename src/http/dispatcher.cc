#include "http/dispatcher.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "http/host.h"

namespace vmonce::http {
namespace {

// RFC 9110 section 9.2.1.
bool IsSafe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
}

// A handler that throws has a bug, or memory ran out; either way its client gets an answer when the
// responder goes, and the others keep their server.
void Call(const Route& route, Request request, Responder responder, Logger& logger) {
  try {
    route.handler(std::move(request), std::move(responder));
  } catch (const std::exception& error) {
    logger.Error("http_handler_threw", {{"route", route.path_template}, {"cause", error.what()}});
  }
}

}  // namespace

std::string_view MethodLabel(std::string_view method) {
  static constexpr std::string_view kKnown[] = {"GET",    "HEAD",    "POST",    "PUT",  "PATCH",
                                                "DELETE", "OPTIONS", "CONNECT", "TRACE"};
  const auto* const found = std::ranges::find(kKnown, method);
  return found == std::end(kKnown) ? "other" : *found;
}

Dispatcher::Dispatcher(Router router, std::vector<std::string> allowed_hosts, BlockingPool& pool,
                       Logger& logger)
    : router_(std::move(router)),
      allowed_hosts_(std::move(allowed_hosts)),
      pool_(pool),
      logger_(logger) {}

bool Dispatcher::Serves(std::string_view authority, const Arrival& arrival) const {
  const std::optional<std::string> name = HostName(authority);
  if (!name) return false;
  return *name == arrival.local_host || IsAllowedHost(*name, allowed_hosts_) ||
         (arrival.tls != nullptr && arrival.tls->Names(*name));
}

Dispatcher::Plan Dispatcher::Decide(Request& request, const Arrival& arrival) const {
  Plan plan;
  Router::Match match = router_.Find(request);
  if (match.route != nullptr) plan.route_label = match.route->path_template;
  // An HTTP/1.0 request without Host comes from no browser.
  if (!request.host.empty() || request.headers.Count("host") > 0) {
    const std::string_view header = request.headers.Find("host").value_or(request.host);
    if (!Serves(request.host, arrival) || !Serves(header, arrival)) {
      plan.answer = ToResponse(HostNotAllowed());
      return plan;
    }
  }
  const bool has_foreign_origin = std::ranges::any_of(
      request.headers.All("origin"),
      [&](std::string_view origin) { return !Serves(OriginAuthority(origin), arrival); });
  if (has_foreign_origin && !IsSafe(request.method)) {
    plan.answer = ToResponse(OriginNotAllowed());
    return plan;
  }
  if (request.method == "OPTIONS" && (request.path == "*" || !match.allow.empty())) {
    plan.answer = Response{204, {}, {}};
    if (!match.allow.empty()) plan.answer->headers.Add("Allow", match.allow);
    return plan;
  }
  if (match.route == nullptr && match.allow.empty()) {
    plan.answer = ToResponse(RouteNotFound());
    return plan;
  }
  if (match.route == nullptr) {
    plan.answer = ToResponse(MethodNotAllowed(match.allow));
    plan.answer->headers.Add("Allow", match.allow);
    return plan;
  }
  plan.route = match.route;
  if (plan.route->admit && !request.principal) plan.answer = plan.route->admit(request);
  return plan;
}

void Dispatcher::Run(const Route& route, Request request, Responder responder) {
  switch (route.mode_of ? route.mode_of(request) : route.mode) {
    case HandlerMode::kInline:
      Call(route, std::move(request), std::move(responder), logger_);
      return;
    case HandlerMode::kBlocking: {
      std::move_only_function<void()> task = [&route, &logger = logger_,
                                              request = std::move(request), responder]() mutable {
        Call(route, std::move(request), std::move(responder), logger);
      };
      if (pool_.TrySubmit(task)) return;
      responder(ToResponse(Overloaded("Too many requests are waiting for a thread.")));
      return;
    }
  }
}

}  // namespace vmonce::http
