#include "http/response_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/check.h"

namespace vmonce::http {
namespace {

// What only the server can know, so that a handler's word on it is dropped.
bool IsServersOwn(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "content-length", "connection", "date", "x-request-id", "transfer-encoding", "keep-alive"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view own) { return EqualsIgnoringCase(own, name); });
}

void AppendStart(std::string& out, int status, const WireFacts& facts) {
  CHECK(status >= 200 && status <= 599);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\nDate: {}\r\nX-Request-Id: {}\r\n",
                 status, ReasonPhrase(status), facts.date, facts.request_id);
}

// What stays the same whoever asks.
void AppendLines(std::string& out, const Response& response) {
  bool has_cache_control = false;
  bool has_content_type_options = false;
  for (std::size_t i = 0; i < response.headers.size(); ++i) {
    const std::string_view name = response.headers.name(i);
    if (IsServersOwn(name)) continue;
    has_cache_control |= EqualsIgnoringCase(name, "cache-control");
    has_content_type_options |= EqualsIgnoringCase(name, "x-content-type-options");
    out.append(name).append(": ").append(response.headers.value(i)).append("\r\n");
  }
  if (!has_cache_control) out.append("Cache-Control: no-store\r\n");
  if (!has_content_type_options) out.append("X-Content-Type-Options: nosniff\r\n");
  if (!HasNoBody(response.status)) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", response.body.size());
  }
}

void AppendEnd(std::string& out, const WireFacts& facts) {
  if (!facts.keeps_alive) {
    out.append("Connection: close\r\n");
  } else if (!facts.is_http11) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

}  // namespace

void AppendHead(std::string& out, const Response& response, const WireFacts& facts) {
  AppendStart(out, response.status, facts);
  AppendLines(out, response);
  AppendEnd(out, facts);
}

void AppendHead(std::string& out, const WrittenResponse& response, const WireFacts& facts) {
  AppendStart(out, response.status, facts);
  out.append(response.lines);
  AppendEnd(out, facts);
}

bool HasValidHeaders(const Response& response) {
  for (std::size_t i = 0; i < response.headers.size(); ++i) {
    if (!IsValidHeader(response.headers.name(i), response.headers.value(i))) return false;
  }
  return true;
}

WrittenPointer Write(Response response) {
  if (!HasValidHeaders(response)) return nullptr;
  auto written = std::make_shared<WrittenResponse>();
  written->status = response.status;
  AppendLines(written->lines, response);
  written->body = std::move(response.body);
  return written;
}

bool HasNoBody(int status) { return status == 204 || status == 304; }

std::string_view DateText::At(Time now) {
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  if (second.time_since_epoch().count() == second_) return text_;
  second_ = second.time_since_epoch().count();
  static constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(second - day);
  text_ =
      fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                  kDays[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                  kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                  clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  return text_;
}

}  // namespace vmonce::http
