#include "api/rest/gate.h"

#include <fmt/format.h>

#include "api/rest/reply.h"
#include "base/check.h"
#include "model/auth_limits.h"

namespace vmonce::rest {
namespace {

namespace limits = model::limits;

constexpr std::string_view kScheme = "Bearer ";

model::Role LeastRole(Access access) {
  switch (access) {
    case Access::kOpen: break;
    case Access::kViewer: return model::Role::kViewer;
    case Access::kMember: return model::Role::kMember;
    case Access::kAdmin:
    case Access::kMetrics: return model::Role::kAdmin;
  }
  CHECK_MSG(access != Access::kOpen, "an open route has no gate");
  return model::Role::kAdmin;
}

// RFC 6750 section 3: without an error code when there were no credentials.
http::Response NotAuthenticated(const model::Problem& problem, bool has_credentials) {
  http::Response response = Reply(problem);
  response.headers.Set("WWW-Authenticate", has_credentials
                                               ? R"(Bearer realm="vmonce", error="invalid_token")"
                                               : R"(Bearer realm="vmonce")");
  return response;
}

http::Response TooMany(std::string_view who, std::chrono::nanoseconds wait) {
  model::Problem problem;
  problem.code = "rate_limited";
  problem.detail = fmt::format(
      "{} Nothing was done and no key is used up; send the same request again later.", who);
  problem.retry_after = std::chrono::ceil<std::chrono::seconds>(wait);
  return Reply(problem);
}

http::Response Forbidden(model::Role has, Access access) {
  model::Problem problem;
  problem.code = "forbidden";
  problem.detail = fmt::format(
      "This needs a token with the role {}{}; yours has the role {}. Nothing was done and no key "
      "is "
      "used up.",
      access == Access::kMetrics ? "metrics or " : "", ToString(LeastRole(access)), ToString(has));
  return Reply(problem);
}

}  // namespace

std::optional<std::string_view> BearerToken(const http::HeaderList& headers) {
  const std::vector<std::string_view> lines = headers.All("authorization");
  if (lines.empty()) return std::nullopt;
  const std::string_view line = lines.front();
  const bool is_bearer = lines.size() == 1 && line.size() > kScheme.size() &&
                         http::EqualsIgnoringCase(line.substr(0, kScheme.size()), kScheme);
  if (!is_bearer) return "";
  std::string_view token = line.substr(kScheme.size());
  while (token.starts_with(' ')) token.remove_prefix(1);
  return token;
}

Gate::Gate(const service::Authenticator& authenticator, Clock& clock, Logger& logger,
           service::Rate rate)
    : authenticator_(authenticator),
      clock_(clock),
      logger_(logger),
      tokens_(rate, limits::kTokens),
      strangers_({limits::kStrangerRate, limits::kStrangerBurst}, limits::kStrangers) {}

std::optional<http::Response> Gate::Admit(Access access, http::Request& request) {
  const std::optional<std::string_view> token = BearerToken(request.headers);
  auto caller = authenticator_.Authenticate(token);
  if (!caller) return RefuseStranger(caller.error(), request, token.has_value());
  const model::Role needed = LeastRole(access);
  const bool is_scrape = access == Access::kMetrics && (*caller)->role == model::Role::kMetrics;
  if ((*caller)->role < needed && !is_scrape) return Forbidden((*caller)->role, access);
  if ((*caller)->token) {
    if (const auto wait = tokens_.Take(*(*caller)->token, clock_.Monotonic())) {
      return TooMany("This token sends more requests than it may.", *wait);
    }
  }
  request.principal = std::move(*caller);
  return std::nullopt;
}

http::Response Gate::RefuseStranger(const model::Problem& problem, const http::Request& request,
                                    bool has_credentials) {
  if (problem.code != "unauthenticated") return Reply(problem);
  if (const auto wait = strangers_.Take(request.remote_address, clock_.Monotonic())) {
    return TooMany("Too many requests without valid credentials came from this address.", *wait);
  }
  logger_.Info("unauthenticated", {{"address", request.remote_address},
                                   {"had_credentials", has_credentials},
                                   {"request_id", request.request_id}});
  return NotAuthenticated(problem, has_credentials);
}

const service::Caller& CallerOf(const http::Request& request) {
  CHECK_MSG(request.principal != nullptr, "a handler asks for the caller of an open route");
  return *static_cast<const service::Caller*>(request.principal.get());
}

}  // namespace vmonce::rest
