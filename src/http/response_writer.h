// The bytes of an answer's head, built into one buffer.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/answer.h"

namespace vmonce::http {

struct WireFacts {
  // IMF-fixdate.
  std::string_view date;
  std::string_view request_id;
  bool is_http11 = true;
  bool keeps_alive = true;
};

// Appends status line, headers and the empty line to `out`. Preconditions: the status is in
// 200..599 and every header passes IsValidHeader. The body is the caller's to append, unless
// HasNoBody(status) or the method was HEAD.
void AppendHead(std::string& out, const Response& response, const WireFacts& facts);
void AppendHead(std::string& out, const WrittenResponse& response, const WireFacts& facts);

// Every line passes IsValidHeader.
bool HasValidHeaders(const Response& response);

// Null when a line of it cannot go out as it is. Precondition: the status is in 200..599.
WrittenPointer Write(Response response);

// 204 and 304 (RFC 9110 section 6.4.1).
bool HasNoBody(int status);

// RFC 9110 section 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT". Built once per second. Not thread-safe.
class DateText {
 public:
  std::string_view At(Time now);

 private:
  std::int64_t second_ = -1;
  std::string text_;
};

}  // namespace vmonce::http
