// Structured log lines: one JSON object a line on stderr. An event is a stable snake_case name;
// fields carry the rest. Nothing secret and no raw idempotency key ever goes in; values are
// escaped, so a line stays a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/clock.h"

namespace vmonce {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, bool> value;

  LogField(std::string_view n, std::string_view v) : name(n), value(v) {}
  LogField(std::string_view n, const std::string& v) : name(n), value(std::string_view(v)) {}
  LogField(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
  LogField(std::string_view n, bool v) : name(n), value(v) {}
  template <typename Integer>
    requires std::is_integral_v<Integer>
  LogField(std::string_view n, Integer v) : name(n), value(static_cast<std::int64_t>(v)) {}
};

// Thread-safe; never blocks on anything but the sink, and never fails.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void Write(LogLevel level, std::string_view event,
                     std::initializer_list<LogField> fields) = 0;

  void Debug(std::string_view e, std::initializer_list<LogField> f = {}) {
    Write(LogLevel::kDebug, e, f);
  }
  void Info(std::string_view e, std::initializer_list<LogField> f = {}) {
    Write(LogLevel::kInfo, e, f);
  }
  void Warning(std::string_view e, std::initializer_list<LogField> f = {}) {
    Write(LogLevel::kWarning, e, f);
  }
  void Error(std::string_view e, std::initializer_list<LogField> f = {}) {
    Write(LogLevel::kError, e, f);
  }
};

// Lines of at least `threshold` go to stderr, each in one write(2). A line that cannot be written
// is lost.
std::unique_ptr<Logger> NewStderrLogger(Clock& clock, LogLevel threshold);

// The line as it is written, with its newline: `time` (RFC 3339, UTC, milliseconds), `level`,
// `event`, then the fields in their order. It is one line, valid JSON and valid UTF-8 whatever the
// values hold, and never longer than kMaxLogLineBytes: a value that would not fit is cut and ends
// in an ellipsis; fields after it may be missing, which
// `"truncated":true` tells.
std::string FormatLogLine(Time time, LogLevel level, std::string_view event,
                          std::span<const LogField> fields);

// POSIX's smallest PIPE_BUF that Linux has: up to here one write(2) to a pipe is never mixed with
// another's.
inline constexpr std::size_t kMaxLogLineBytes = 4096;

// Drops everything; for tests.
std::unique_ptr<Logger> NewNullLogger();

}  // namespace vmonce
