// Bounds of serial consoles, each with its reason. What is kept of one is
// limits::kConsoleFileBytes (setting).
#pragma once

#include "base/clock.h"

namespace vmonce::model::limits {

// A guest prints up to a megabyte a second: a few megabytes between two looks.
inline constexpr Milliseconds kTrimConsolesEvery{5'000};
inline constexpr int kConsoleMib = 16;
inline constexpr int kConsoleMibMin = 1;
inline constexpr int kConsoleMibMax = 1024;
// A follower asks whether the VM was deleted when nothing came for so long.
inline constexpr Milliseconds kClientConsoleIdle{2'000};
// Lines that --tail may ask for: they are found in the last part that one answer holds.
inline constexpr int kClientTailLines = 10'000;

}  // namespace vmonce::model::limits
