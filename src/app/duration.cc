#include "app/duration.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace vmonce::app {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};

// Largest first, as FormatDuration() tries them.
constexpr std::array<Unit, 5> kUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

}  // namespace

std::optional<Milliseconds> ParseDuration(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 0 || text.front() == '-') return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    if (number > std::numeric_limits<std::int64_t>::max() / unit.milliseconds) return std::nullopt;
    return Milliseconds(number * unit.milliseconds);
  }
  return std::nullopt;
}

std::string FormatDuration(Milliseconds duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (count % unit.milliseconds == 0)
      return fmt::format("{}{}", count / unit.milliseconds, unit.name);
  }
  return fmt::format("{}ms", count);
}

}  // namespace vmonce::app
