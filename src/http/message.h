// An HTTP request and an HTTP response as plain values, and the strict decoding of a request
// target. What is ambiguous here is refused: a proxy, a log and a handler must never read one
// target differently.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vmonce::http {

// Header lines in their order, duplicates kept. All text lies in one block, so that a message costs
// two allocations and not two per line. Views that it gives out are valid until the list changes or
// is moved.
class HeaderList {
 public:
  // Precondition for responses: `name` is a token and `value` has no control bytes (see
  // IsValidHeader).
  void Add(std::string_view name, std::string_view value);
  // Removes every line of that name, then adds one.
  void Set(std::string_view name, std::string_view value);
  void Clear();
  // Room for so much text and so many lines, so that adding them allocates no more.
  void Reserve(std::size_t bytes, std::size_t lines);

  std::size_t size() const { return lines_.size(); }
  std::string_view name(std::size_t i) const;
  std::string_view value(std::size_t i) const;

  // Names are compared without regard to ASCII case. Find gives the first value.
  std::optional<std::string_view> Find(std::string_view name) const;
  std::vector<std::string_view> All(std::string_view name) const;
  std::size_t Count(std::string_view name) const;

 private:
  struct Line {
    std::uint32_t name_begin;
    std::uint32_t value_begin;
    std::uint32_t value_end;
  };
  bool IsNamed(const Line& line, std::string_view name) const;

  std::string block_;
  std::vector<Line> lines_;
};

struct NamedValue {
  std::string name;
  std::string value;
  bool operator==(const NamedValue&) const = default;
};

struct Request {
  std::string method;
  // As sent.
  std::string target;
  // The target's path as sent, still percent-encoded; every segment of it decodes.
  std::string path;
  // Decoded, in order, duplicates kept; "a" alone is ("a", "").
  std::vector<NamedValue> query;
  // The authority asked for: of an absolute target if there is one, else the Host header. Empty in
  // HTTP/1.0 without.
  std::string host;
  HeaderList headers;
  std::string body;
  // The peer's IP address without the port.
  std::string remote_address;
  // Filled by the router, decoded.
  std::vector<NamedValue> path_params;
  // Who asks, as the route's `admit` found out and its handler reads it back; null where nobody
  // asked. What it points to is shared with everybody who asks as the same one.
  std::shared_ptr<const void> principal;
  // What X-Request-Id of the answer says: the client's own if it sent a plain one, else one made
  // here.
  std::string request_id;

  // Precondition: the route's template names it.
  const std::string& PathParam(std::string_view name) const;
  // The first of that name; null when there is none.
  const std::string* QueryParam(std::string_view name) const;
};

// The server adds Date, Content-Length, Connection and X-Request-Id itself (a handler's are
// dropped), and where the handler has none, Cache-Control: no-store and X-Content-Type-Options:
// nosniff.
struct Response {
  // 200 to 599.
  int status = 200;
  HeaderList headers;
  std::string body;
};

// A Response with that Content-Type.
Response NewResponse(int status, std::string_view content_type, std::string body);
// Content type application/json.
Response JsonResponse(int status, std::string body);

// "Not Found"; "Unknown" for a status that is not registered.
std::string_view ReasonPhrase(int status);

bool EqualsIgnoringCase(std::string_view a, std::string_view b);
// RFC 9110 section 5.6.2.
bool IsToken(std::string_view text);
// Whether a line can go out as it is: a token, and no byte that could start another line.
bool IsValidHeader(std::string_view name, std::string_view value);
// "Application/JSON; charset=utf-8" → "application/json".
std::string MediaType(std::string_view content_type);

// RFC 3986 section 2.1. kInvalid for a bad escape, a control byte (encoded or not) or text that is
// not UTF-8. In a query, "+" is a space (the form encoding of the WHATWG's URL standard).
enum class DecodeAs { kPath, kQuery };
Result<std::string> PercentDecode(std::string_view text, DecodeAs as);

// Fills path and query, and host if the target is absolute, from request.target. kInvalid when the
// target is neither a path, an absolute http(s) URL nor "*", or does not decode. Nothing is
// normalised: "/a/../b", "//" and "/./" stay what they are and match no route.
Status ParseTarget(Request& request);

}  // namespace vmonce::http
