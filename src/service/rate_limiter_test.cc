#include "service/rate_limiter.h"

#include <gtest/gtest.h>

#include <string>

namespace vmonce::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr Rate kTen{.per_second = 10, .burst = 5};
constexpr Instant kStart{seconds(1'000)};

TEST(RateLimiter, LetsABurstThroughAndThenSoManyASecond) {
  RateLimiter<std::string> limiter(kTen, 100);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limiter.Take("a", kStart), std::nullopt) << i;
  EXPECT_EQ(limiter.Take("a", kStart), milliseconds(100));
  EXPECT_EQ(limiter.Take("a", kStart + milliseconds(99)), milliseconds(1));
  EXPECT_EQ(limiter.Take("a", kStart + milliseconds(100)), std::nullopt);
  EXPECT_EQ(limiter.Take("a", kStart + milliseconds(100)), milliseconds(100));
  // Over ten seconds, ten a second and the burst.
  int taken = 0;
  for (int ms = 100; ms < 10'100; ++ms) {
    taken += limiter.Take("a", kStart + milliseconds(ms)) ? 0 : 1;
  }
  EXPECT_EQ(taken, 99);
}

TEST(RateLimiter, ARefusalCostsNothing) {
  RateLimiter<std::string> limiter(kTen, 100);
  for (int i = 0; i < 1'000; ++i) limiter.Take("a", kStart);
  EXPECT_EQ(limiter.Take("a", kStart + milliseconds(100)), std::nullopt);
}

// report 133
TEST(RateLimiter, OneCallersHasteIsNotAnothers) {
  RateLimiter<std::string> limiter(kTen, 100);
  for (int i = 0; i < 1'000; ++i) limiter.Take("a", kStart);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limiter.Take("b", kStart), std::nullopt);
}

TEST(RateLimiter, WithoutALimitAllMayPass) {
  RateLimiter<std::string> limiter({}, 100);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(limiter.Take("a", kStart), std::nullopt);
  EXPECT_EQ(limiter.size(), 0u);
}

TEST(RateLimiter, NeverHoldsMoreThanItsBoundAndTheRestShareOneBucket) {
  RateLimiter<int> limiter(kTen, 10);
  for (int key = 0; key < 10; ++key) EXPECT_EQ(limiter.Take(key, kStart), std::nullopt);
  for (int key = 10; key < 15; ++key) EXPECT_EQ(limiter.Take(key, kStart), std::nullopt);
  EXPECT_NE(limiter.Take(15, kStart), std::nullopt);
  EXPECT_EQ(limiter.size(), 10u);
  // Those who have been idle for long make room.
  EXPECT_EQ(limiter.Take(16, kStart + seconds(1)), std::nullopt);
  EXPECT_EQ(limiter.size(), 1u);
}

}  // namespace
}  // namespace vmonce::service
