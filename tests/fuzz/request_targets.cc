// What anybody can send: key, JSON, path and query, bytes of HTTP.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "api/rest/gate.h"
#include "api/rest/parse_headers.h"
#include "api/rest/parse_query.h"
#include "api/rest/routes.h"
#include "base/check.h"
#include "base/json.h"
#include "http/host.h"
#include "http/request_parser.h"
#include "http/router.h"
#include "model/idempotency.h"
#include "model/limits.h"
#include "model/token.h"
#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {
namespace {

void CheckIsClients(const model::Problem& problem) {
  const int status = model::KindOf(problem.code).status;
  CHECK_MSG(status >= 400 && status < 500, problem.code);
  CHECK(!problem.detail.empty());
}

// Every byte as %XX.
std::string Encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return encoded;
}

const http::Router& RouterOfAllPaths() {
  static const http::Router router = [] {
    http::Router made;
    for (const rest::RouteEntry& route : rest::AllRoutes()) {
      made.Add(std::string(route.method), std::string(route.path_template), route.mode,
               [](http::Request, http::Responder) {});
    }
    return made;
  }();
  return router;
}

void ReadQueryOf(const http::Request& request) {
  rest::QueryReader reader(request);
  reader.Text("name");
  reader.Int("offset", {0, 1 << 20});
  reader.Bool("with_deleted");
  reader.Id("vm");
  reader.KeyHash();
  const ports::Page page = reader.Page();
  const std::optional<model::Problem> problem = reader.Finish();
  if (problem) CheckIsClients(*problem);
  CHECK(page.most >= 1 && page.most <= model::limits::kPageItems);
}

// The same requests and the same refusal, however the bytes are cut.
constexpr http::ParserLimits kParserLimits{512, 256};

struct Reading {
  std::vector<std::string> requests;
  std::string refusal;
  http::RequestParser::State end{};

  bool operator==(const Reading&) const = default;
};

std::string Shown(const http::Request& request) {
  std::string shown =
      fmt::format("{} {} {} {}", request.method, request.target, request.path, request.host);
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    shown += fmt::format("\n{}: {}", request.headers.name(i), request.headers.value(i));
  }
  return shown + "\n\n" + request.body;
}

Reading ReadAll(std::string_view bytes, std::size_t step) {
  using State = http::RequestParser::State;
  http::RequestParser parser(kParserLimits);
  Reading reading;
  std::string held;
  while (true) {
    while (parser.state() == State::kHeader || parser.state() == State::kBody) {
      const std::size_t taken = held.empty() ? 0 : parser.Feed(held);
      CHECK(taken <= held.size());
      held.erase(0, taken);
      if (taken > 0) continue;
      CHECK_MSG(parser.state() == State::kRefused || held.size() < kParserLimits.max_header_bytes,
                "the parser wants more than it said");
      if (bytes.empty()) break;
      held += bytes.substr(0, step);
      bytes.remove_prefix(std::min(step, bytes.size()));
    }
    reading.end = parser.state();
    if (reading.end != State::kComplete) break;
    CHECK(parser.body_bytes() <= kParserLimits.max_body_bytes);
    reading.requests.push_back(Shown(parser.request()));
    parser.Reset();
  }
  if (reading.end == State::kRefused) {
    const http::Problem& refusal = parser.refusal();
    // 501 and 505 are the client's doing too: a coding and a version that we do not have.
    CHECK_MSG((refusal.status >= 400 && refusal.status < 500) || refusal.status == 501 ||
                  refusal.status == 505,
              refusal.code);
    reading.refusal = refusal.code;
  }
  return reading;
}

}  // namespace

std::string Quoted(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

// Header lines, one a line.
void FuzzKeyHeader(std::string_view input) {
  http::HeaderList headers;
  std::size_t lines = 0;
  for (std::string_view rest = input; lines < 3; ++lines) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    headers.Add("Idempotency-Key", rest.substr(0, end));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  const auto key = rest::ParseKeyHeader(headers);
  if (!key) {
    CheckIsClients(key.error());
    return;
  }
  CHECK(key->has_value());
  const model::IdempotencyKey& value = **key;
  CHECK(!value.value.empty() && value.value.size() <= model::limits::kKeyBytes);
  // The quoted spelling names the same key.
  const std::string quoted = Quoted(value.value);
  const std::array<std::string_view, 1> line = {quoted};
  const auto again = model::ParseKey(line);
  CHECK(again && again->has_value() && **again == value);
  const std::string prefix = model::RedactedPrefix(value);
  CHECK(prefix.size() <= value.value.size() / 2 + std::string_view("…").size());
}

// "Name: value" lines; a line without a colon is the body. The last Host is the request's.
void FuzzHeaders(std::string_view input) {
  http::Request request;
  request.host = "localhost";
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) {
      request.body = line;
    } else if (line.starts_with("Host: ")) {
      request.host = line.substr(colon + 2);
    } else {
      request.headers.Add(line.substr(0, colon), line.substr(colon + 2));
    }
  }
  const std::chrono::seconds wait = rest::ParsePrefer(request.headers);
  CHECK(wait.count() >= 0 && wait <= model::limits::kPreferWait);
  if (const auto sender = rest::CheckSender(request); !sender) CheckIsClients(sender.error());
  if (const auto version = rest::ParseIfMatch(request.headers); !version) {
    CheckIsClients(version.error());
  } else if (*version && **version != rest::kMatchesNothing) {
    // A tag that we give is read in the one spelling that we give it in.
    CHECK(request.headers.Find("if-match")->contains(rest::EntityTag(**version)));
  }
  if (const auto known = rest::IsKnownToClient(request.headers, 7); !known) {
    CheckIsClients(known.error());
  }
  const auto token = rest::BearerToken(request.headers);
  CHECK(token.has_value() == (request.headers.Count("authorization") > 0));
  if (token && model::IsTokenSecret(*token)) {
    CHECK(model::TokenPrefix(*token).size() < token->size());
  }
}

void FuzzJson(std::string_view input) {
  const auto value = ParseStrictJson(input);
  if (!value) {
    CHECK(value.error().code == ErrorCode::kInvalid);
    return;
  }
  const std::string canonical = CanonicalJson(*value);
  const auto again = ParseStrictJson(canonical);
  CHECK_MSG(again.has_value(), canonical);
  CHECK_MSG(CanonicalJson(*again) == canonical, canonical);
  CHECK_MSG(DifferingPointers(*value, *again, 1).empty(), canonical);
  // Who is strict accepts nothing that others refuse.
  boost::system::error_code refused;
  boost::json::parse(input, refused);
  CHECK_MSG(!refused, canonical);
}

void FuzzTarget(std::string_view input) {
  http::Request request;
  request.method = input.starts_with('!') ? "POST" : "GET";
  request.target = input.substr(input.starts_with('!') ? 1 : 0);
  // An Origin is the host that its authority names, and no other.
  CHECK(input.ends_with(http::OriginAuthority(input)));
  if (http::IsAllowedHost(input, http::LoopbackHosts())) CHECK(http::HostName(input).has_value());
  if (const Status parsed = http::ParseTarget(request); !parsed) {
    CHECK(parsed.error().code == ErrorCode::kInvalid);
    return;
  }
  // What was decoded means the same when it is encoded anew.
  http::Request again;
  again.target = request.path + "?";
  for (const http::NamedValue& parameter : request.query) {
    if (!again.target.ends_with('?')) again.target += "&";
    again.target += Encoded(parameter.name) + "=" + Encoded(parameter.value);
  }
  if (!request.query.empty() && request.path.starts_with('/')) {
    CHECK_MSG(http::ParseTarget(again).has_value(), again.target);
    CHECK_MSG(again.query == request.query, again.target);
    CHECK_MSG(again.path == request.path, again.target);
  }
  const http::Router::Match match = RouterOfAllPaths().Find(request);
  for (const http::NamedValue& parameter : request.path_params) {
    CHECK(!parameter.value.empty() && parameter.value != "." && parameter.value != "..");
    CHECK(!parameter.value.contains('/') && !parameter.value.contains('\\'));
  }
  if (match.route != nullptr) ReadQueryOf(request);
}

void FuzzRequestBytes(std::string_view input) {
  const Reading whole = ReadAll(input, std::max<std::size_t>(input.size(), 1));
  CHECK_MSG(ReadAll(input, 1) == whole, "byte by byte it is read differently");
  CHECK_MSG(ReadAll(input, 7) == whole, "in pieces of seven it is read differently");
}

}  // namespace vmonce::fuzz
