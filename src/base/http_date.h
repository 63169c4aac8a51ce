// Dates in HTTP header fields (RFC 9110 section 5.6.7).
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace vmonce {

// Accepts the one form that may be sent, "Sun, 06 Nov 1994 08:49:37 GMT": with the right day of the
// week, and nothing around it. The two obsolete forms are refused.
std::optional<Time> ParseHttpDate(std::string_view text);

}  // namespace vmonce
