#include "base/system.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <set>

namespace vmonce {
namespace {

constexpr Milliseconds kAmple(20000);

class SystemTest : public testing::Test {
 protected:
  const std::unique_ptr<Clock> clock_ = NewSystemClock();
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
};

// A number that threads meet at, as production code uses a monitor.
class Gate {
 public:
  explicit Gate(Threads& threads) : monitor_(threads.NewMonitor()) {}

  void Add(int n) {
    MonitorLock lock(*monitor_);
    count_ += n;
    monitor_->NotifyAll();
  }
  bool WaitFor(int least, Instant deadline) {
    MonitorLock lock(*monitor_);
    while (count_ < least) {
      if (!monitor_->WaitUntil(deadline)) return count_ >= least;
    }
    return true;
  }
  void WaitFor(int least) {
    MonitorLock lock(*monitor_);
    while (count_ < least) monitor_->Wait();
  }

 private:
  const std::unique_ptr<Monitor> monitor_;
  int count_ GUARDED_BY(*monitor_) = 0;
};

TEST_F(SystemTest, ClockNeverGoesBack) {
  Time last = clock_->Now();
  Instant last_instant = clock_->Monotonic();
  for (int i = 0; i < 10000; ++i) {
    const Time now = clock_->Now();
    const Instant instant = clock_->Monotonic();
    ASSERT_GE(now, last);
    ASSERT_GE(instant, last_instant);
    last = now;
    last_instant = instant;
  }
  EXPECT_GT(ToUnixMs(last), 1700000000000);
}

TEST_F(SystemTest, RandomFillsEverythingAndDiffersEachTime) {
  const auto random = NewSystemRandom();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random->Next());
  EXPECT_EQ(seen.size(), 1000u);
  std::array<std::byte, 1000> bytes{};
  random->Fill(bytes);
  EXPECT_LT(std::count(bytes.begin(), bytes.end(), std::byte{0}), 50);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random->Below(7), 7u);
}

TEST_F(SystemTest, MonitorWakesThoseWhoWaitForAState) {
  Gate gate(*threads_);
  Gate done(*threads_);
  std::vector<std::unique_ptr<Thread>> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(threads_->Spawn("waiter", [&](std::stop_token) {
      gate.WaitFor(1);
      done.Add(1);
    }));
  }
  gate.Add(1);
  EXPECT_TRUE(done.WaitFor(4, clock_->Monotonic() + kAmple));
}

TEST_F(SystemTest, MonitorExcludesAllButOne) {
  const auto monitor = threads_->NewMonitor();
  int unguarded = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(threads_->Spawn("adder", [&](std::stop_token) {
      for (int j = 0; j < 20000; ++j) {
        MonitorLock lock(*monitor);
        ++unguarded;
      }
    }));
  }
  threads.clear();
  EXPECT_EQ(unguarded, 80000);
}

TEST_F(SystemTest, MonitorTellsWhenTheDeadlineHasPassed) {
  Gate gate(*threads_);
  const Instant deadline = clock_->Monotonic() + Milliseconds(30);
  EXPECT_FALSE(gate.WaitFor(1, deadline));
  EXPECT_GE(clock_->Monotonic(), deadline);
  EXPECT_FALSE(gate.WaitFor(1, clock_->Monotonic() - Milliseconds(1)));
}

TEST_F(SystemTest, MonitorTakesNeverForADeadline) {
  Gate gate(*threads_);
  const auto thread = threads_->Spawn("adder", [&](std::stop_token) { gate.Add(1); });
  EXPECT_TRUE(gate.WaitFor(1, kNever));
}

TEST_F(SystemTest, DestroyingAThreadStopsAndJoinsIt) {
  Gate begun(*threads_);
  std::atomic<bool> ended = false;
  auto thread = threads_->Spawn("sleeper", [&](std::stop_token stop) {
    begun.Add(1);
    EXPECT_FALSE(threads_->SleepFor(kAmple * 100, stop));
    ended = true;
  });
  begun.WaitFor(1);
  EXPECT_FALSE(ended);
  thread.reset();
  EXPECT_TRUE(ended);
}

TEST_F(SystemTest, ThreadsCarryTheirNames) {
  char shown[16] = {};
  threads_
      ->Spawn("a-name-far-too-long",
              [&](std::stop_token) { pthread_getname_np(pthread_self(), shown, sizeof(shown)); })
      ->Join();
  EXPECT_STREQ(shown, "a-name-far-too-");
}

TEST_F(SystemTest, DetachedThreadsRunAlone) {
  const auto gate = std::make_shared<Gate>(*threads_);  // Shared: the thread may end last.
  threads_->SpawnDetached("alone", [gate] { gate->Add(1); });
  EXPECT_TRUE(gate->WaitFor(1, clock_->Monotonic() + kAmple));
}

TEST_F(SystemTest, SleepLastsUnlessStopped) {
  const Instant start = clock_->Monotonic();
  EXPECT_TRUE(threads_->SleepFor(Milliseconds(20), std::stop_token()));
  EXPECT_GE(clock_->Monotonic() - start, Milliseconds(20));
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(threads_->SleepFor(kAmple * 100, stopped.get_token()));
}

TEST(Environment, TakesEmptyForUnset) {
  ASSERT_EQ(setenv("VMONCE_TEST_VARIABLE", "x", 1), 0);
  EXPECT_EQ(Environment("VMONCE_TEST_VARIABLE"), "x");
  ASSERT_EQ(setenv("VMONCE_TEST_VARIABLE", "", 1), 0);
  EXPECT_EQ(Environment("VMONCE_TEST_VARIABLE"), std::nullopt);
  unsetenv("VMONCE_TEST_VARIABLE");
  EXPECT_EQ(Environment("VMONCE_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace vmonce
