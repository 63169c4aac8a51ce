#include "base/rfc3339.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>

#include "base/check.h"

namespace vmonce {
namespace {

// Takes what it reads from the front of a text; once something did not fit, it stays failed.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Exactly `count` digits.
  int Digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!NextIsDigit()) {
        failed_ = true;
        return 0;
      }
      value = value * 10 + (Take() - '0');
    }
    return value;
  }

  void Literal(char expected) {
    if (!Skip(expected)) failed_ = true;
  }

  bool Skip(char wanted) {
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  // The digits after a point, in milliseconds.
  int Fraction() {
    int milliseconds = 0;
    int count = 0;
    for (; NextIsDigit(); ++count) {
      const int digit = Take() - '0';
      if (count < 3) milliseconds = milliseconds * 10 + digit;
    }
    if (count == 0 || count > 9) failed_ = true;
    for (; count < 3; ++count) milliseconds *= 10;
    return milliseconds;
  }

  void Refuse() { failed_ = true; }
  bool AllRead() const { return !failed_ && text_.empty(); }

 private:
  bool NextIsDigit() const {
    return !text_.empty() && text_.front() >= '0' && text_.front() <= '9';
  }
  char Take() {
    const char taken = text_.front();
    text_.remove_prefix(1);
    return taken;
  }

  std::string_view text_;
  bool failed_ = false;
};

std::chrono::minutes ReadOffset(Scanner& scanner) {
  if (scanner.Skip('Z')) return std::chrono::minutes(0);
  const bool is_west = scanner.Skip('-');
  if (!is_west) scanner.Literal('+');
  const int hours = scanner.Digits(2);
  scanner.Literal(':');
  const int minutes = scanner.Digits(2);
  if (hours > 23 || minutes > 59) scanner.Refuse();
  const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return is_west ? -offset : offset;
}

// Puts the last `count` digits of `value` at `at`.
void Write(std::string& text, std::size_t at, std::size_t count, int value) {
  for (std::size_t i = count; i > 0; --i, value /= 10) {
    text[at + i - 1] = static_cast<char>('0' + value % 10);
  }
}

}  // namespace

std::string FormatRfc3339(Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const int year = static_cast<int>(date.year());
  CHECK(year >= 0 && year <= 9999);
  // Every answer has several: written digit by digit, without a format to read.
  std::string text = "0000-00-00T00:00:00.000Z";
  Write(text, 0, 4, year);
  Write(text, 5, 2, static_cast<int>(static_cast<unsigned>(date.month())));
  Write(text, 8, 2, static_cast<int>(static_cast<unsigned>(date.day())));
  Write(text, 11, 2, static_cast<int>(clock.hours().count()));
  Write(text, 14, 2, static_cast<int>(clock.minutes().count()));
  Write(text, 17, 2, static_cast<int>(clock.seconds().count()));
  Write(text, 20, 3, static_cast<int>(clock.subseconds().count()));
  return text;
}

std::optional<Time> ParseRfc3339(std::string_view text) {
  Scanner scanner(text);
  const int year = scanner.Digits(4);
  scanner.Literal('-');
  const auto month = static_cast<unsigned>(scanner.Digits(2));
  scanner.Literal('-');
  const auto day = static_cast<unsigned>(scanner.Digits(2));
  scanner.Literal('T');
  const int hour = scanner.Digits(2);
  scanner.Literal(':');
  const int minute = scanner.Digits(2);
  scanner.Literal(':');
  const int second = scanner.Digits(2);
  const int millisecond = scanner.Skip('.') ? scanner.Fraction() : 0;
  const std::chrono::minutes offset = ReadOffset(scanner);
  if (!scanner.AllRead()) return std::nullopt;

  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const Time time = Time(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
                    std::chrono::minutes(minute) + std::chrono::seconds(second) +
                    Milliseconds(millisecond) - offset;
  // An offset may lead out of the years that have a text.
  const std::chrono::year_month_day utc(std::chrono::floor<std::chrono::days>(time));
  if (utc.year() < std::chrono::year(0) || utc.year() > std::chrono::year(9999))
    return std::nullopt;
  return time;
}

}  // namespace vmonce
