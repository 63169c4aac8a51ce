// Timestamps as text (RFC 3339), the only form in which times stand in answers, labels and logs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace vmonce {

// "2026-01-02T03:04:05.678Z": UTC, always three digits of fraction, so that texts sort as times do.
// Precondition: the year is 0 to 9999.
std::string FormatRfc3339(Time time);

// Accepts RFC 3339's date-time with upper-case T and Z, any numeric offset, and a fraction of 1 to
// 9 digits, of which what is finer than a millisecond is dropped. Refuses leap seconds, impossible
// dates and anything around the text.
std::optional<Time> ParseRfc3339(std::string_view text);

}  // namespace vmonce
