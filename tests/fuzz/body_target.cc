// The bodies of everything that changes something. The first byte chooses the route.
#include "api/rest/parse_body.h"
#include "base/check.h"
#include "base/json.h"
#include "base/rfc3339.h"
#include "base/system.h"
#include "model/idempotency.h"
#include "model/token.h"
#include "service/caller.h"
#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {
namespace {

using service::ChangeRequest;

constexpr std::string_view kId = "01890a5d-ac96-774b-bcce-b302099a8057";

http::Request Post(std::string_view body) {
  static const auto caller = std::make_shared<const service::Caller>();
  http::Request request;
  request.principal = caller;
  request.method = "POST";
  request.host = "localhost";
  request.body = body;
  request.path_params = {{"id", std::string(kId)}};
  request.headers.Add("Content-Type", "application/json");
  request.headers.Add("Idempotency-Key", "k-1");
  return request;
}

void CheckRefusal(const model::Problem& problem) {
  const int status = model::KindOf(problem.code).status;
  CHECK_MSG(status >= 400 && status < 500, problem.code);
  CHECK(!problem.detail.empty());
}

// The same body in its canonical spelling. Precondition: it was accepted and is not empty.
std::string Respelled(std::string_view body) {
  const auto value = ParseStrictJson(body);
  CHECK(value.has_value());
  return CanonicalJson(*value);
}

void ParseAsCreate(std::string_view body) {
  static const std::unique_ptr<Random> random = NewSystemRandom();
  static const Sealer sealer(std::string(32, 'k'), *random);
  const auto create = rest::ParseCreate(Post(body), sealer);
  if (!create) {
    CheckRefusal(create.error());
    return;
  }
  const std::string respelled = Respelled(body);
  const auto again = rest::ParseCreate(Post(respelled), sealer);
  CHECK_MSG(again.has_value(), respelled);
  const service::CreateRequest& one = create->request;
  const service::CreateRequest& other = again->request;
  CHECK_MSG(one.intent == other.intent, respelled);
  CHECK_MSG(one.user_data == other.user_data, respelled);
  CHECK_MSG(Fingerprint(one.asked.request) == Fingerprint(other.asked.request), respelled);
  CHECK_MSG(CanonicalRequest(one.asked.redacted) == CanonicalRequest(other.asked.redacted),
            respelled);
}

void ParseAsChange(std::string_view body, ChangeRequest::Kind kind) {
  const auto change = rest::ParseChange(Post(body), kind);
  if (!change) {
    CheckRefusal(change.error());
    return;
  }
  if (body.empty()) return;
  const std::string respelled = Respelled(body);
  const auto again = rest::ParseChange(Post(respelled), kind);
  CHECK_MSG(again.has_value(), respelled);
  CHECK_MSG(Fingerprint(change->asked.request) == Fingerprint(again->asked.request), respelled);
}

void ParseAsToken(std::string_view body) {
  const Time now = FromUnixMs(1'800'000'000'000);
  const auto token = rest::ParseNewToken(Post(body), now);
  if (!token) {
    CheckRefusal(token.error());
    return;
  }
  CHECK(model::IsProjectName(token->project.value));
  CHECK(!token->expires || (*token->expires > now && !FormatRfc3339(*token->expires).empty()));
  const auto again = rest::ParseNewToken(Post(Respelled(body)), now);
  CHECK(again && again->role == token->role && again->expires == token->expires);
}

}  // namespace

void FuzzRequestBody(std::string_view input) {
  if (input.empty()) return;
  const std::string_view body = input.substr(1);
  switch (input.front()) {
    case 'u': ParseAsChange(body, ChangeRequest::Kind::kUpdate); return;
    case 'd': ParseAsChange(body, ChangeRequest::Kind::kDelete); return;
    case 's': ParseAsChange(body, ChangeRequest::Kind::kStop); return;
    case 'g': ParseAsChange(body, ChangeRequest::Kind::kStart); return;
    case 'r': ParseAsChange(body, ChangeRequest::Kind::kReboot); return;
    case 't': ParseAsToken(body); return;
    case 'b':
      if (const auto bare = rest::ParseBare(Post(body), "/v1/reconcile"); !bare)
        CheckRefusal(bare.error());
      return;
    default: ParseAsCreate(body); return;
  }
}

}  // namespace vmonce::fuzz
