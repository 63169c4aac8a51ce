#include "base/http_date.h"

#include <fmt/chrono.h>

#include <ctime>
#include <string>

namespace vmonce {

std::optional<Time> ParseHttpDate(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  if (strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr) return std::nullopt;
  const std::time_t seconds = timegm(&parts);
  // What strptime forgives (spaces, a wrong weekday, 31 June) is not what would be written.
  if (fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(seconds)) != text) {
    return std::nullopt;
  }
  return FromUnixMs(static_cast<std::int64_t>(seconds) * 1'000);
}

}  // namespace vmonce
