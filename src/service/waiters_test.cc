#include "service/waiters.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/system.h"

namespace vmonce::service {
namespace {

model::OperationId Id(std::uint8_t last) {
  model::OperationId id;
  id.value.bytes[15] = last;
  return id;
}

struct Rig {
  std::unique_ptr<Clock> clock = NewSystemClock();
  std::unique_ptr<Threads> threads = NewSystemThreads();
  Waiters waiters{*clock, *threads};
  std::atomic<int> ended = 0;
  std::atomic<int> expired = 0;

  void Wait(std::uint8_t operation, Milliseconds how_long) {
    waiters.Wait(Id(operation), clock->Monotonic() + how_long,
                 [this](bool has_ended) { ++(has_ended ? ended : expired); });
  }
  bool WaitFor(const std::atomic<int>& count, int value) {
    for (int i = 0; i < 5'000 && count < value; ++i) threads->SleepFor(Milliseconds(1), {});
    return count == value;
  }
};

constexpr Milliseconds kLong{3'600'000};

TEST(Waiters, TellsEveryoneWhoWaitsForAnOperationOfItsEndAndNobodyElse) {
  Rig rig;
  rig.waiters.Start();
  for (int i = 0; i < 3; ++i) rig.Wait(1, kLong);
  rig.Wait(2, kLong);
  rig.waiters.Ended(Id(1));
  EXPECT_EQ(rig.ended, 3);
  rig.waiters.Ended(Id(1));
  EXPECT_EQ(rig.ended, 3) << "once each";
  EXPECT_EQ(rig.expired, 0);
}

// As its contract says: who waits reads the state afterwards.
TEST(Waiters, KnowsNothingOfAnEndBeforeTheWait) {
  Rig rig;
  rig.waiters.Ended(Id(1));
  rig.Wait(1, kLong);
  EXPECT_EQ(rig.ended, 0);
  rig.waiters.Ended(Id(1));
  EXPECT_EQ(rig.ended, 1);
}

TEST(Waiters, TellsWhenTheDeadlineHasPassedWhoseverComesFirst) {
  Rig rig;
  rig.waiters.Start();
  const Instant began = rig.clock->Monotonic();
  rig.Wait(1, kLong);
  rig.Wait(2, Milliseconds(30));  // Earlier than what the thread sleeps towards.
  rig.Wait(3, Milliseconds(10));
  EXPECT_TRUE(rig.WaitFor(rig.expired, 2));
  EXPECT_GE(rig.clock->Monotonic() - began, Milliseconds(30));
  rig.waiters.Ended(Id(2));
  EXPECT_EQ(rig.ended, 0) << "it was told already";
  rig.waiters.Ended(Id(1));
  EXPECT_EQ(rig.ended, 1);
}

TEST(Waiters, TellsAtOnceWhenTheDeadlineIsInThePast) {
  Rig rig;
  rig.waiters.Start();
  rig.Wait(1, Milliseconds(-10));
  EXPECT_TRUE(rig.WaitFor(rig.expired, 1));
}

TEST(Waiters, StopTellsWhoWaitsAndWhoComesLater) {
  Rig rig;
  rig.waiters.Start();
  rig.Wait(1, kLong);
  rig.Wait(2, kLong);
  rig.waiters.Stop();
  EXPECT_EQ(rig.expired, 2);
  rig.Wait(3, kLong);
  EXPECT_EQ(rig.expired, 3);
  rig.waiters.Ended(Id(1));
  rig.waiters.Stop();
  EXPECT_EQ(rig.ended, 0);
  EXPECT_EQ(rig.expired, 3);
}

TEST(Waiters, TellsTenThousandOnceEachWhileEndsAndDeadlinesCross) {
  constexpr int kCount = 10'000;
  Rig rig;
  rig.waiters.Start();
  const std::unique_ptr<Thread> ending = rig.threads->Spawn("ending", [&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      for (int i = 0; i < 100; ++i) rig.waiters.Ended(Id(static_cast<std::uint8_t>(i)));
    }
  });
  for (int i = 0; i < kCount; ++i) {
    rig.Wait(static_cast<std::uint8_t>(i % 200), Milliseconds(i % 7));
  }
  for (int i = 0; i < 5'000 && rig.ended + rig.expired < kCount; ++i) {
    rig.threads->SleepFor(Milliseconds(1), {});
  }
  ending->RequestStop();
  ending->Join();
  rig.waiters.Stop();
  EXPECT_EQ(rig.ended + rig.expired, kCount);
  EXPECT_GE(rig.expired, kCount / 2) << "half of the operations never end";
}

// A callback may wait again, or end another: nothing is locked while it runs.
TEST(Waiters, LetsACallbackComeBack) {
  Rig rig;
  rig.Wait(2, kLong);
  rig.waiters.Wait(Id(1), kNever, [&](bool) {
    rig.waiters.Ended(Id(2));
    rig.Wait(3, kLong);
  });
  rig.waiters.Ended(Id(1));
  EXPECT_EQ(rig.ended, 1);
  rig.waiters.Ended(Id(3));
  EXPECT_EQ(rig.ended, 2);
}

}  // namespace
}  // namespace vmonce::service
