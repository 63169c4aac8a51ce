// Errors on the wire: application/problem+json (RFC 9457). Every refusal of this service, http's
// own included, is built here, so that a client can branch on `code`, `retryable` and
// `retry_same_key` and never on a text.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace vmonce::http {

struct Problem {
  int status = 500;
  // Stable snake_case; `type` is "https://vmonce.dev/problems/<code>".
  std::string code;
  // For people: what happened to this request and what to do. Holds no secret.
  std::string detail;
  // The summary of the type; left out when empty.
  std::string title;
  // Whether the same request may succeed later, and whether it may (and should) then carry the same
  // idempotency key.
  bool retryable = false;
  bool retry_same_key = true;
  // The id of the operation that the answer is about.
  std::optional<std::string> operation;
  // Goes into the Retry-After header and the member `retry_after`, in whole seconds, at least 1.
  std::optional<std::chrono::milliseconds> retry_after;
  // More members; one of a name above is ignored.
  boost::json::object extra;
};

Response ToResponse(const Problem& problem);

// http's own.
Problem BadRequest(std::string detail);
// A client that speaks in clear where TLS is served.
Problem TlsRequired();
Problem RouteNotFound();
Problem MethodNotAllowed(std::string_view allow);
Problem RequestTimeout(std::string detail);
Problem BodyTooLarge(std::size_t limit_bytes);
Problem UnsupportedMediaType(std::string detail);
Problem ExpectationFailed();
Problem HostNotAllowed();
Problem OriginNotAllowed();
Problem HeaderTooLarge(std::size_t limit_bytes);
Problem TransferCodingUnsupported();
Problem HttpVersionUnsupported();
Problem Overloaded(std::string detail);
// Says nothing of the cause, which is for the log alone.
Problem InternalError();

}  // namespace vmonce::http
