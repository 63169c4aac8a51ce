#include "api/rest/parse_headers.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <vector>

#include "base/http_date.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace limits = model::limits;

std::unexpected<model::Problem> Refuse(std::string code, std::string detail,
                                       std::string_view header) {
  model::Problem problem;
  problem.code = std::move(code);
  problem.fields.push_back({std::string(header), detail});
  problem.detail = std::move(detail);
  return std::unexpected(std::move(problem));
}

std::string_view Trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Splits at `separator`, but not inside double quotes.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  bool is_quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') is_quoted = !is_quoted;
    if (text[i] != separator || is_quoted) continue;
    parts.push_back(Trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(Trim(text.substr(begin)));
  return parts;
}

std::string_view Unquote(std::string_view text) {
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0) return std::nullopt;
  return value;
}

// RFC 9110 section 8.8.3.
struct Tag {
  bool is_weak = false;
  std::string_view opaque;
};

std::optional<Tag> ParseTag(std::string_view text) {
  Tag tag;
  tag.is_weak = text.starts_with("W/");
  if (tag.is_weak) text.remove_prefix(2);
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  tag.opaque = text.substr(1, text.size() - 2);
  for (const char c : tag.opaque) {
    if (c == '"' || static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return std::nullopt;
  }
  return tag;
}

// Of all lines of the header. Nothing when one is malformed.
std::optional<std::vector<Tag>> ParseTags(const std::vector<std::string_view>& lines) {
  std::vector<Tag> tags;
  for (const std::string_view line : lines) {
    for (const std::string_view text : Split(line, ',')) {
      const std::optional<Tag> tag = ParseTag(text);
      if (!tag) return std::nullopt;
      tags.push_back(*tag);
    }
  }
  return tags;
}

bool IsStar(const std::vector<std::string_view>& lines) {
  return lines.size() == 1 && Trim(lines.front()) == "*";
}

// What we give: the shortest decimal form and no other.
std::int64_t VersionOf(const Tag& tag) {
  const std::optional<std::int64_t> version = Number(tag.opaque);
  if (tag.is_weak || !version || std::to_string(*version) != tag.opaque) return kMatchesNothing;
  return *version;
}

bool IsJson(const http::HeaderList& headers) {
  if (headers.Count("content-type") != 1) return false;
  const std::string_view line = *headers.Find("content-type");
  if (http::MediaType(line) != "application/json") return false;
  for (const std::string_view parameter : Split(line, ';')) {
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos) continue;
    const bool is_charset = http::EqualsIgnoringCase(Trim(parameter.substr(0, equals)), "charset");
    const std::string_view value = Unquote(Trim(parameter.substr(equals + 1)));
    if (is_charset && !http::EqualsIgnoringCase(value, "utf-8")) return false;
  }
  return true;
}

// The host and port of an http or https origin (RFC 6454 section 6.2) against the authority asked
// for.
bool IsSameOrigin(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) {
      return http::EqualsIgnoringCase(origin.substr(scheme.size()), host);
    }
  }
  return false;
}

}  // namespace

Parsed<std::optional<model::IdempotencyKey>> ParseKeyHeader(const http::HeaderList& headers) {
  const std::vector<std::string_view> lines = headers.All("idempotency-key");
  Result<std::optional<model::IdempotencyKey>> key = model::ParseKey(lines);
  if (!key) return Refuse("invalid_idempotency_key", key.error().detail, "Idempotency-Key");
  return std::move(*key);
}

std::chrono::seconds ParsePrefer(const http::HeaderList& headers) {
  for (const std::string_view line : headers.All("prefer")) {
    for (const std::string_view preference : Split(line, ',')) {
      const std::string_view token = Split(preference, ';').front();
      const std::size_t equals = token.find('=');
      if (equals == std::string_view::npos) continue;
      if (!http::EqualsIgnoringCase(Trim(token.substr(0, equals)), "wait")) continue;
      const std::optional<std::int64_t> wait = Number(Unquote(Trim(token.substr(equals + 1))));
      if (!wait) return std::chrono::seconds(0);
      return std::chrono::seconds(std::min<std::int64_t>(*wait, limits::kPreferWait.count()));
    }
  }
  return std::chrono::seconds(0);
}

Parsed<std::optional<Time>> ParseFirstSent(const http::HeaderList& headers) {
  const std::vector<std::string_view> lines = headers.All("idempotency-first-sent");
  if (lines.empty()) return std::nullopt;
  const std::optional<Time> time = lines.size() == 1 ? ParseHttpDate(lines.front()) : std::nullopt;
  if (time) return time;
  return Refuse("invalid_request",
                "Idempotency-First-Sent must be one date as in Sun, 06 Nov 1994 08:49:37 GMT",
                "Idempotency-First-Sent");
}

Parsed<std::optional<std::int64_t>> ParseIfMatch(const http::HeaderList& headers) {
  const std::vector<std::string_view> lines = headers.All("if-match");
  if (lines.empty() || IsStar(lines)) return std::nullopt;
  const std::optional<std::vector<Tag>> tags = ParseTags(lines);
  if (!tags || tags->size() != 1) {
    return Refuse("invalid_request",
                  "If-Match must be * or the one ETag that the VM was read with, in its quotes",
                  "If-Match");
  }
  return VersionOf(tags->front());
}

Parsed<bool> IsKnownToClient(const http::HeaderList& headers, std::int64_t version) {
  const std::vector<std::string_view> lines = headers.All("if-none-match");
  if (lines.empty()) return false;
  if (IsStar(lines)) return true;
  const std::optional<std::vector<Tag>> tags = ParseTags(lines);
  if (!tags) {
    return Refuse("invalid_request", "If-None-Match must be * or a list of ETags in their quotes",
                  "If-None-Match");
  }
  for (const Tag& tag : *tags) {
    if (tag.opaque == std::to_string(version)) return true;
  }
  return false;
}

std::string EntityTag(std::int64_t version) { return fmt::format("\"{}\"", version); }

Parsed<void> CheckSender(const http::Request& request) {
  if (!request.body.empty() && !IsJson(request.headers)) {
    return Refuse("unsupported_media_type",
                  "A change needs Content-Type: application/json, with its text in UTF-8",
                  "Content-Type");
  }
  if (!request.body.empty()) return {};
  for (const std::string_view origin : request.headers.All("origin")) {
    if (IsSameOrigin(origin, request.host)) continue;
    return Refuse("origin_not_allowed",
                  "A change without a body is not accepted from a page of another origin",
                  "Origin");
  }
  return {};
}

}  // namespace vmonce::rest
