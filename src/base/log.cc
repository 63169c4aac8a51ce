#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "base/rfc3339.h"

namespace vmonce {
namespace {

// What the end of a cut line needs: an ellipsis, a quote, the mark, the brace and the newline.
constexpr std::size_t kReservedBytes = 32;
constexpr std::size_t kBudget = kMaxLogLineBytes - kReservedBytes;
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "error";
}

struct CodePoint {
  char32_t value;
  std::size_t length;
};

// The code point at the front of `text`, or nothing where the bytes are no UTF-8 (RFC 3629: no
// surrogates, no overlong forms, nothing beyond U+10FFFF).
std::optional<CodePoint> Decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return CodePoint{byte(0), 1};
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return std::nullopt;
  char32_t value = byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(i) & 0x3f);
  }
  const bool is_overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (is_overlong || is_surrogate || value > 0x10ffff) return std::nullopt;
  return CodePoint{value, length};
}

// Beside what JSON demands: what a terminal obeys (C1 controls, DEL) and what some readers take for
// a line's end.
bool NeedsEscape(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029;
}

void AppendCodePoint(std::string& line, CodePoint point, std::string_view text) {
  if (point.value == '"' || point.value == '\\') {
    line += '\\';
    line += static_cast<char>(point.value);
  } else if (point.value == '\n') {
    line += "\\n";
  } else if (NeedsEscape(point.value)) {
    fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned>(point.value));
  } else {
    line += text.substr(0, point.length);
  }
}

// Whether all of it fitted.
bool AppendString(std::string& line, std::string_view text) {
  line += '"';
  while (!text.empty()) {
    // The longest escape of one code point has six bytes.
    if (line.size() + 6 > kBudget) {
      line += kEllipsis;
      line += '"';
      return false;
    }
    const auto point = Decode(text);
    if (point) {
      AppendCodePoint(line, *point, text);
    } else {
      line += kReplacement;
    }
    text.remove_prefix(point ? point->length : 1);
  }
  line += '"';
  return true;
}

// Whether all of it fitted.
bool AppendField(std::string& line, const LogField& field) {
  // A name is an identifier of ours and short; a value of another kind has at most 20 bytes.
  if (line.size() + field.name.size() * 6 + 32 > kBudget) return false;
  line += ',';
  AppendString(line, field.name);
  line += ':';
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    return AppendString(line, *text);
  }
  if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
    fmt::format_to(std::back_inserter(line), "{}", *number);
  } else {
    line += std::get<bool>(field.value) ? "true" : "false";
  }
  return true;
}

class StderrLogger final : public Logger {
 public:
  StderrLogger(Clock& clock, LogLevel threshold) : clock_(clock), threshold_(threshold) {}

  void Write(LogLevel level, std::string_view event,
             std::initializer_list<LogField> fields) override {
    if (level < threshold_) return;
    const std::string line = FormatLogLine(clock_.Now(), level, event, fields);
    while (write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) {
    }
  }

 private:
  Clock& clock_;
  const LogLevel threshold_;
};

class NullLogger final : public Logger {
 public:
  void Write(LogLevel, std::string_view, std::initializer_list<LogField>) override {}
};

}  // namespace

std::string FormatLogLine(Time time, LogLevel level, std::string_view event,
                          std::span<const LogField> fields) {
  std::string line =
      fmt::format(R"({{"time":"{}","level":"{}","event":)", FormatRfc3339(time), LevelName(level));
  bool is_complete = AppendString(line, event);
  for (const LogField& field : fields) {
    if (!is_complete) break;
    is_complete = AppendField(line, field);
  }
  line += is_complete ? "}\n" : ",\"truncated\":true}\n";
  return line;
}

std::unique_ptr<Logger> NewStderrLogger(Clock& clock, LogLevel threshold) {
  return std::make_unique<StderrLogger>(clock, threshold);
}

std::unique_ptr<Logger> NewNullLogger() { return std::make_unique<NullLogger>(); }

}  // namespace vmonce
