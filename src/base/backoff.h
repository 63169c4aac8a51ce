// How long to wait before the next try: exponential backoff with full jitter, capped.
#pragma once

#include "base/clock.h"
#include "base/random.h"

namespace vmonce {

struct BackoffLimits {
  Milliseconds base;  // The longest wait after the first failure; positive.
  Milliseconds cap;   // The longest wait after any; at least `base`.
};

// A wait chosen evenly from zero to min(cap, base * 2^(failures - 1)): full jitter spreads callers
// that failed together, which equal or partial jitter does not. `failures` counts the failures so
// far in a row, the last one included; zero or less gives no wait.
Milliseconds Backoff(int failures, const BackoffLimits& limits, Random& random);

}  // namespace vmonce
