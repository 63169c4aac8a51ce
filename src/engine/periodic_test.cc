#include "engine/periodic.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/system.h"

namespace vmonce::engine {
namespace {

constexpr Milliseconds kNeverInATest{3'600'000};

struct Rig {
  std::unique_ptr<Clock> clock = NewSystemClock();
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::atomic<int> runs = 0;

  bool WaitForRuns(int count) {
    for (int i = 0; i < 5'000 && runs < count; ++i) threads->SleepFor(Milliseconds(1), {});
    return runs >= count;
  }
};

TEST(Periodic, RunsAtOnceAndThenEveryPeriod) {
  Rig rig;
  Periodic periodic("p", Milliseconds(10), [&] { ++rig.runs; }, *rig.clock, *rig.threads);
  const Instant began = rig.clock->Monotonic();
  periodic.Start();
  EXPECT_TRUE(rig.WaitForRuns(4));
  EXPECT_GE(rig.clock->Monotonic() - began, Milliseconds(30));
}

TEST(Periodic, RunsOnDemandLongBeforeThePeriodIsOver) {
  Rig rig;
  Periodic periodic("p", kNeverInATest, [&] { ++rig.runs; }, *rig.clock, *rig.threads);
  periodic.Start();
  ASSERT_TRUE(rig.WaitForRuns(1));
  periodic.Trigger();
  EXPECT_TRUE(rig.WaitForRuns(2));
  periodic.Stop();
  EXPECT_EQ(rig.runs, 2);
}

// A trigger that comes while an activation runs asks for one that begins later.
TEST(Periodic, RunsAgainWhenItIsTriggeredDuringARun) {
  Rig rig;
  Periodic* self = nullptr;
  Periodic periodic(
      "p", kNeverInATest,
      [&] {
        if (++rig.runs == 1) self->Trigger();
      },
      *rig.clock, *rig.threads);
  self = &periodic;
  periodic.Start();
  EXPECT_TRUE(rig.WaitForRuns(2));
  periodic.Stop();
  EXPECT_EQ(rig.runs, 2);
}

TEST(Periodic, StopsWithoutWaitingForThePeriodAndRunsNoMore) {
  Rig rig;
  Periodic periodic("p", kNeverInATest, [&] { ++rig.runs; }, *rig.clock, *rig.threads);
  periodic.Start();
  ASSERT_TRUE(rig.WaitForRuns(1));
  periodic.Stop();
  periodic.Trigger();
  periodic.Stop();
  EXPECT_EQ(rig.runs, 1);
}

TEST(Periodic, ThatWasNeverStartedCanBeStopped) {
  Rig rig;
  Periodic periodic("p", kNeverInATest, [&] { ++rig.runs; }, *rig.clock, *rig.threads);
  periodic.Stop();
  EXPECT_EQ(rig.runs, 0);
}

}  // namespace
}  // namespace vmonce::engine
