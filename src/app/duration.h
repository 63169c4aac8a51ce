// Durations as people write them in the configuration: a number and one unit, "500ms", "15s",
// "10m", "24h", "30d".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace vmonce::app {

// Nothing for anything else: signs, fractions, spaces, several units, no unit, or more than fits.
std::optional<Milliseconds> ParseDuration(std::string_view text);

// In the largest unit that loses nothing: 86400 s is "1d", 90 s is "90s". Not negative.
std::string FormatDuration(Milliseconds duration);

}  // namespace vmonce::app
