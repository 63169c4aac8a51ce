#include "base/backoff.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/system.h"

namespace vmonce {
namespace {

constexpr BackoffLimits kLimits{Milliseconds(100), Milliseconds(1500)};

struct Extremes {
  Milliseconds least = Milliseconds::max();
  Milliseconds most = Milliseconds::min();
};

Extremes Observe(int failures, const BackoffLimits& limits) {
  const auto random = NewSystemRandom();
  Extremes seen;
  for (int i = 0; i < 2000; ++i) {
    const Milliseconds wait = Backoff(failures, limits, *random);
    seen.least = std::min(seen.least, wait);
    seen.most = std::max(seen.most, wait);
  }
  return seen;
}

TEST(Backoff, DoublesItsCeilingUpToTheCapAndUsesTheWholeRange) {
  const std::pair<int, int> ceilings[] = {{1, 100}, {2, 200},  {3, 400},
                                          {4, 800}, {5, 1500}, {1000000, 1500}};
  for (const auto& [failures, ceiling] : ceilings) {
    const Extremes seen = Observe(failures, kLimits);
    EXPECT_GE(seen.least, Milliseconds(0));
    EXPECT_LE(seen.most, Milliseconds(ceiling));
    // 2,000 even draws miss a tenth at either end with a chance below 10^-90.
    EXPECT_LT(seen.least, Milliseconds(ceiling / 10));
    EXPECT_GT(seen.most, Milliseconds(ceiling - ceiling / 10));
  }
}

TEST(Backoff, DoesNotWaitBeforeAnyFailure) {
  EXPECT_EQ(Observe(0, kLimits).most, Milliseconds(0));
  EXPECT_EQ(Observe(-1, kLimits).most, Milliseconds(0));
}

TEST(Backoff, DoesNotOverflow) {
  const BackoffLimits limits{Milliseconds(3), Milliseconds::max()};
  const Extremes seen = Observe(std::numeric_limits<int>::max(), limits);
  EXPECT_GE(seen.least, Milliseconds(0));
  EXPECT_GT(seen.most, Milliseconds::max() / 2);
}

TEST(BackoffDeathTest, RefusesLimitsThatMakeNoSense) {
  const auto random = NewSystemRandom();
  EXPECT_DEATH((void)Backoff(1, {Milliseconds(0), Milliseconds(1)}, *random), "CHECK failed");
  EXPECT_DEATH((void)Backoff(1, {Milliseconds(2), Milliseconds(1)}, *random), "CHECK failed");
}

}  // namespace
}  // namespace vmonce
