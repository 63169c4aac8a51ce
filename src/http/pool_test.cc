#include "http/pool.h"

#include <gtest/gtest.h>

#include "base/system.h"

namespace vmonce::http {
namespace {

class PoolTest : public testing::Test {
 public:
  PoolTest() : threads_(NewSystemThreads()), monitor_(threads_->NewMonitor()) {}

  void Set(bool& flag) {
    const MonitorLock lock(*monitor_);
    flag = true;
    monitor_->NotifyAll();
  }
  void Await(const bool& flag) {
    const MonitorLock lock(*monitor_);
    while (!flag) monitor_->Wait();
  }
  // Says so when it begins, ends when released.
  std::move_only_function<void()> Blocker() {
    return [this] {
      Set(began_);
      Await(released_);
    };
  }

  std::unique_ptr<Threads> threads_;
  std::unique_ptr<Monitor> monitor_;
  bool began_ = false;
  bool released_ = false;
};

TEST_F(PoolTest, RunsWhatItTakes) {
  BlockingPool pool(*threads_, 2, 1);
  bool ran = false;
  std::move_only_function<void()> task = [&] { Set(ran); };
  ASSERT_TRUE(pool.TrySubmit(task));
  Await(ran);
}

TEST_F(PoolTest, RefusesWhatDoesNotFitAndLeavesItWhole) {
  BlockingPool pool(*threads_, 1, 1);
  std::move_only_function<void()> blocker = Blocker();
  ASSERT_TRUE(pool.TrySubmit(blocker));
  Await(began_);
  bool ran = false;
  std::move_only_function<void()> queued = [] {};
  std::move_only_function<void()> refused = [&] { ran = true; };
  EXPECT_TRUE(pool.TrySubmit(queued));
  EXPECT_FALSE(pool.TrySubmit(refused));
  refused();
  EXPECT_TRUE(ran);
  Set(released_);
}

TEST_F(PoolTest, StopDropsWhatIsQueuedAndWaitsForWhatRuns) {
  struct TellsItsEnd {
    PoolTest* test;
    bool* ended;
    TellsItsEnd(PoolTest* t, bool* e) : test(t), ended(e) {}
    TellsItsEnd(TellsItsEnd&& other) noexcept
        : test(std::exchange(other.test, nullptr)), ended(other.ended) {}
    ~TellsItsEnd() {
      if (test != nullptr) test->Set(*ended);
    }
  };
  BlockingPool pool(*threads_, 1, 1);
  std::move_only_function<void()> blocker = Blocker();
  ASSERT_TRUE(pool.TrySubmit(blocker));
  Await(began_);
  bool ran = false;
  bool ended = false;
  std::move_only_function<void()> queued = [&ran, end = TellsItsEnd(this, &ended)] { ran = true; };
  ASSERT_TRUE(pool.TrySubmit(queued));
  const auto stopper = threads_->Spawn("stopper", [&pool](std::stop_token) { pool.Stop(); });
  Await(ended);
  std::move_only_function<void()> late = [] {};
  EXPECT_FALSE(pool.TrySubmit(late));
  Set(released_);
  stopper->Join();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace vmonce::http
