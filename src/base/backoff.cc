#include "base/backoff.h"

#include "base/check.h"

namespace vmonce {

Milliseconds Backoff(int failures, const BackoffLimits& limits, Random& random) {
  CHECK(limits.base > Milliseconds::zero() && limits.cap >= limits.base);
  if (failures <= 0) return Milliseconds::zero();
  Milliseconds ceiling = limits.base;
  for (int i = 1; i < failures && ceiling < limits.cap; ++i) {
    // Compared by halves: doubling a large value could overflow.
    ceiling = ceiling > limits.cap / 2 ? limits.cap : ceiling * 2;
  }
  return Milliseconds(random.Below(static_cast<std::uint64_t>(ceiling.count()) + 1));
}

}  // namespace vmonce
