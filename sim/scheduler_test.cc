#include "sim/scheduler.h"

#include <gtest/gtest.h>

#include "sim/world_threads.h"

namespace vmonce::sim {
namespace {

using std::chrono::seconds;

struct SchedulerTest : testing::Test {
  Stacks stacks;
  Chance chance{1};
  Scheduler scheduler{Chance(7), stacks};

  void RunToEnd(std::function<void()> body) {
    const FiberId main = scheduler.Spawn(kWorld, "main", std::move(body));
    EXPECT_TRUE(scheduler.RunUntilEnded(main, 10'000));
  }
};

TEST_F(SchedulerTest, TimePassesOnlyWhenNobodyCanRun) {
  std::vector<int> order;
  RunToEnd([&] {
    scheduler.Spawn(kWorld, "late", [&] {
      scheduler.Park(Instant(seconds(5)));
      order.push_back(2);
    });
    for (int i = 0; i < 10; ++i) scheduler.Yield();
    EXPECT_EQ(scheduler.now(), Instant());
    order.push_back(1);
    scheduler.Park(Instant(seconds(9)));
    EXPECT_EQ(scheduler.now(), Instant(seconds(9)));
  });
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_F(SchedulerTest, AKilledProcessNeverRunsAgainAndIsNotUnwound) {
  bool went_on = false;
  bool was_unwound = false;
  struct Guard {
    bool& flag;
    ~Guard() { flag = true; }
  };
  RunToEnd([&] {
    scheduler.Spawn(1, "victim", [&] {
      const Guard guard{was_unwound};
      scheduler.Park(Instant(seconds(1)));
      went_on = true;
    });
    scheduler.Yield();
    scheduler.Kill(1);
    scheduler.Park(Instant(seconds(10)));
  });
  EXPECT_FALSE(went_on);
  EXPECT_FALSE(was_unwound);
}

TEST_F(SchedulerTest, WhoKillsItsOwnProcessDoesNotReturn) {
  bool returned = false;
  RunToEnd([&] {
    scheduler.Spawn(1, "suicide", [&] {
      scheduler.Kill(1);
      returned = true;
    });
    scheduler.Park(Instant(seconds(1)));
  });
  EXPECT_FALSE(returned);
}

TEST_F(SchedulerTest, APausedProcessStandsStillAndThenGoesOn) {
  Instant ran_at{};
  RunToEnd([&] {
    scheduler.Spawn(1, "worker", [&] {
      scheduler.Park(Instant(seconds(1)));
      ran_at = scheduler.now();
    });
    scheduler.Yield();
    scheduler.Pause(1, Instant(seconds(60)));
    scheduler.Park(Instant(seconds(100)));
  });
  EXPECT_GE(ran_at, Instant(seconds(60)));
}

TEST_F(SchedulerTest, AMonitorLetsOneInAndWakesWhoWaits) {
  WorldClock clock(scheduler);
  FiberThreads threads(scheduler, kWorld, clock, chance, 2);
  const auto monitor = threads.NewMonitor();
  int inside = 0;
  int most = 0;
  bool is_told = false;
  RunToEnd([&] {
    std::vector<std::unique_ptr<Thread>> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(threads.Spawn("t", [&](std::stop_token) {
        MonitorLock lock(*monitor);
        most = std::max(most, ++inside);
        scheduler.Yield();
        --inside;
        while (!is_told) monitor->Wait();
      }));
    }
    scheduler.Park(Instant(seconds(1)));
    {
      MonitorLock lock(*monitor);
      is_told = true;
    }
    monitor->NotifyAll();
    for (const auto& thread : all) thread->Join();
  });
  EXPECT_EQ(most, 1);
}

TEST_F(SchedulerTest, AWaitEndsAtItsDeadlineAndASleepAtAStop) {
  WorldClock clock(scheduler);
  FiberThreads threads(scheduler, kWorld, clock, chance, 0);
  const auto monitor = threads.NewMonitor();
  RunToEnd([&] {
    {
      MonitorLock lock(*monitor);
      EXPECT_FALSE(monitor->WaitUntil(Instant(seconds(3))));
    }
    EXPECT_EQ(scheduler.now(), Instant(seconds(3)));
    bool slept = true;
    const auto sleeper = threads.Spawn(
        "s", [&](std::stop_token stop) { slept = threads.SleepFor(Milliseconds(60'000), stop); });
    scheduler.Park(Instant(seconds(4)));
    sleeper->RequestStop();
    sleeper->Join();
    EXPECT_FALSE(slept);
    EXPECT_LT(scheduler.now(), Instant(seconds(10)));
  });
}

TEST_F(SchedulerTest, WhoSleptWaitsAsLongAsItsOwnClockSays) {
  WorldClock clock(scheduler);
  FiberThreads threads(scheduler, kWorld, clock, chance, 0);
  RunToEnd([&] {
    scheduler.Spawn(kWorld, "lid", [&] {
      scheduler.Park(Instant(seconds(4)));
      clock.SetSlept(seconds(7));
    });
    EXPECT_TRUE(threads.SleepFor(seconds(10), {}));
    EXPECT_EQ(scheduler.now(), Instant(seconds(17)));
    EXPECT_EQ(clock.Monotonic(), Instant(seconds(10)));
    const auto monitor = threads.NewMonitor();
    MonitorLock lock(*monitor);
    EXPECT_FALSE(monitor->WaitUntil(Instant(seconds(11))));
    EXPECT_EQ(scheduler.now(), Instant(seconds(18)));
  });
}

TEST_F(SchedulerTest, WhoIsAloneGoesOnWithoutASwitchAndTimePasses) {
  RunToEnd([&] {
    const std::uint64_t turns = scheduler.turns();
    scheduler.Yield();
    EXPECT_FALSE(scheduler.Park(Instant(seconds(3))));
    EXPECT_EQ(scheduler.now(), Instant(seconds(3)));
    EXPECT_EQ(scheduler.turns(), turns + 2);
  });
}

TEST_F(SchedulerTest, AFiberThatNeverRestsComesToTheEndOfItsTurns) {
  const FiberId main = scheduler.Spawn(kWorld, "main", [&] {
    while (true) scheduler.Yield();
  });
  EXPECT_FALSE(scheduler.RunUntilEnded(main, 1'000));
}

}  // namespace
}  // namespace vmonce::sim
