#include "base/doorbell.h"

#include <gtest/gtest.h>

#include "base/system.h"

namespace vmonce {
namespace {

class DoorbellTest : public testing::Test {
 protected:
  Instant In(Milliseconds wait) { return clock_->Monotonic() + wait; }

  std::unique_ptr<Clock> clock_ = NewSystemClock();
  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  Doorbell bell_{*threads_};
};

TEST_F(DoorbellTest, IsNotMissedWhenItRangBefore) {
  bell_.Ring();
  EXPECT_TRUE(bell_.WaitUntil(In(Milliseconds(0))));
}

TEST_F(DoorbellTest, RungTwiceIsHeardOnce) {
  bell_.Ring();
  bell_.Ring();
  EXPECT_TRUE(bell_.WaitUntil(kNever));
  EXPECT_FALSE(bell_.WaitUntil(In(Milliseconds(1))));
}

TEST_F(DoorbellTest, WakesTheOneThatWaits) {
  const auto ringer = threads_->Spawn("ringer", [&](std::stop_token) { bell_.Ring(); });
  EXPECT_TRUE(bell_.WaitUntil(In(Milliseconds(10'000))));
}

}  // namespace
}  // namespace vmonce
