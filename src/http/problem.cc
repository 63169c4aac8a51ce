#include "http/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

namespace vmonce::http {
namespace {

constexpr std::string_view kTypePrefix = "https://vmonce.dev/problems/";

// What an overloaded server asks for: queues here drain within milliseconds, a second spreads the
// crowd.
constexpr std::chrono::seconds kOverloadedRetryAfter{1};

Problem New(int status, std::string_view code, std::string_view title, std::string detail) {
  Problem problem;
  problem.status = status;
  problem.code = code;
  problem.title = title;
  problem.detail = std::move(detail);
  return problem;
}

}  // namespace

Response ToResponse(const Problem& problem) {
  boost::json::object body;
  body["type"] = fmt::format("{}{}", kTypePrefix, problem.code);
  if (!problem.title.empty()) body["title"] = problem.title;
  body["status"] = problem.status;
  body["code"] = problem.code;
  body["detail"] = problem.detail;
  body["retryable"] = problem.retryable;
  body["retry_same_key"] = problem.retry_same_key;
  if (problem.operation) body["operation"] = *problem.operation;
  std::int64_t retry_after = 0;
  if (problem.retry_after) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*problem.retry_after);
    retry_after = std::max<std::int64_t>(seconds.count(), 1);
    body["retry_after"] = retry_after;
  }
  for (const auto& member : problem.extra) {
    if (!body.contains(member.key())) body.emplace(member.key(), member.value());
  }
  Response response =
      NewResponse(problem.status, "application/problem+json", boost::json::serialize(body));
  if (retry_after > 0) response.headers.Add("Retry-After", fmt::format("{}", retry_after));
  return response;
}

Problem BadRequest(std::string detail) {
  return New(400, "bad_request", "The request is not well-formed HTTP", std::move(detail));
}

Problem TlsRequired() {
  return New(400, "tls_required", "This port speaks TLS",
             "The request came in clear. Nothing of it was read; send it to https:// instead.");
}

Problem RouteNotFound() {
  return New(404, "route_not_found", "No resource is served at this path",
             "No resource is served at this path.");
}

Problem MethodNotAllowed(std::string_view allow) {
  return New(405, "method_not_allowed", "This path does not serve the method",
             fmt::format("This path serves {}.", allow));
}

Problem RequestTimeout(std::string detail) {
  Problem problem =
      New(408, "request_timeout", "The request did not arrive in time", std::move(detail));
  problem.retryable = true;
  return problem;
}

Problem BodyTooLarge(std::size_t limit_bytes) {
  Problem problem = New(413, "body_too_large", "The body is too large",
                        fmt::format("The body may have at most {} bytes.", limit_bytes));
  problem.extra["limit_bytes"] = limit_bytes;
  return problem;
}

Problem UnsupportedMediaType(std::string detail) {
  return New(415, "unsupported_media_type", "The body must be application/json", std::move(detail));
}

Problem ExpectationFailed() {
  return New(417, "expectation_failed", "The expectation is not supported",
             "Only the expectation 100-continue is supported.");
}

Problem HostNotAllowed() {
  return New(421, "host_not_allowed", "This host name is not served",
             "This server does not answer for the requested host name. Use its address, or "
             "have the name added to allowed_hosts in its configuration.");
}

Problem OriginNotAllowed() {
  return New(403, "origin_not_allowed", "Pages of this origin may not do this",
             "Changes are not accepted from pages of another origin.");
}

Problem HeaderTooLarge(std::size_t limit_bytes) {
  Problem problem = New(431, "header_too_large", "The header is too large",
                        fmt::format("The header may have at most {} bytes.", limit_bytes));
  problem.extra["limit_bytes"] = limit_bytes;
  return problem;
}

Problem TransferCodingUnsupported() {
  return New(501, "transfer_coding_unsupported", "The transfer coding is not supported",
             "Only the transfer coding chunked is supported.");
}

Problem HttpVersionUnsupported() {
  return New(505, "http_version_unsupported", "The HTTP version is not supported",
             "Only HTTP/1.1 and HTTP/1.0 are supported.");
}

Problem Overloaded(std::string detail) {
  Problem problem = New(503, "overloaded", "Too many requests wait", std::move(detail));
  problem.retryable = true;
  problem.retry_after = kOverloadedRetryAfter;
  return problem;
}

Problem InternalError() {
  Problem problem = New(500, "internal", "The service failed to answer",
                        "The server failed to answer. The same request may be sent again.");
  problem.retryable = true;
  return problem;
}

}  // namespace vmonce::http
