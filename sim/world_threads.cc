#include "sim/world_threads.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace vmonce::sim {
namespace {

class FiberMonitor final : public Monitor {
 public:
  FiberMonitor(Scheduler& scheduler, WorldClock& clock, Chance& chance, int yield_one_in)
      : scheduler_(scheduler), clock_(clock), chance_(chance), yield_one_in_(yield_one_in) {}

  void Lock() NO_THREAD_SAFETY_ANALYSIS override {
    if (yield_one_in_ > 0 && chance_.OneIn(yield_one_in_)) scheduler_.Yield();
    while (is_held_) {
      entering_.push_back(scheduler_.Current());
      scheduler_.Park(kNever);
    }
    is_held_ = true;
  }
  void Unlock() NO_THREAD_SAFETY_ANALYSIS override {
    is_held_ = false;
    for (const FiberId fiber : entering_) scheduler_.Wake(fiber);
    entering_.clear();
  }
  void Wait() NO_THREAD_SAFETY_ANALYSIS override { WaitUntil(kNever); }
  bool WaitUntil(Instant deadline) NO_THREAD_SAFETY_ANALYSIS override {
    const FiberId me = scheduler_.Current();
    waiting_.push_back(me);
    Unlock();
    const bool was_woken = scheduler_.Park(clock_.InTheWorld(deadline));
    std::erase(waiting_, me);
    Lock();
    return was_woken || clock_.Monotonic() < deadline;
  }
  void NotifyOne() override {
    if (waiting_.empty()) return;
    const auto chosen =
        waiting_.begin() +
        (waiting_.size() == 1 ? 0 : static_cast<std::ptrdiff_t>(chance_.Draw() % waiting_.size()));
    const FiberId fiber = *chosen;
    waiting_.erase(chosen);
    scheduler_.Wake(fiber);
  }
  void NotifyAll() override {
    std::vector<FiberId> all;
    all.swap(waiting_);
    for (const FiberId fiber : all) scheduler_.Wake(fiber);
  }

 private:
  Scheduler& scheduler_;
  WorldClock& clock_;
  Chance& chance_;
  const int yield_one_in_;
  bool is_held_ = false;
  std::vector<FiberId> entering_;
  std::vector<FiberId> waiting_;
};

class FiberThread final : public Thread {
 public:
  FiberThread(Scheduler& scheduler, Owner owner, std::string name,
              std::function<void(std::stop_token)> body)
      : scheduler_(scheduler),
        shared_(std::make_shared<Shared>()),
        fiber_(scheduler.Spawn(owner, std::move(name),
                               [shared = shared_, &scheduler, body = std::move(body)] {
                                 body(shared->stop.get_token());
                                 for (const FiberId fiber : shared->joining) scheduler.Wake(fiber);
                               })) {}
  ~FiberThread() override {
    RequestStop();
    Join();
  }
  void RequestStop() override { shared_->stop.request_stop(); }
  void Join() override {
    while (!scheduler_.HasEnded(fiber_)) {
      shared_->joining.push_back(scheduler_.Current());
      // It wakes whoever joins as its last act, and has ended by the next turn.
      scheduler_.Park(scheduler_.now() + std::chrono::seconds(1));
    }
  }

 private:
  // Of the thread and of whoever holds it, whoever goes last.
  struct Shared {
    std::stop_source stop;
    std::vector<FiberId> joining;
  };
  Scheduler& scheduler_;
  const std::shared_ptr<Shared> shared_;
  const FiberId fiber_;
};

class NobodyElse final : public Monitor {
 public:
  void Lock() NO_THREAD_SAFETY_ANALYSIS override {
    CHECK(!is_held_);
    is_held_ = true;
  }
  void Unlock() NO_THREAD_SAFETY_ANALYSIS override { is_held_ = false; }
  void Wait() override { CHECK_MSG(false, "an indivisible act waits"); }
  bool WaitUntil(Instant) override {
    CHECK_MSG(false, "an indivisible act waits");
    return false;
  }
  void NotifyOne() override {}
  void NotifyAll() override {}

 private:
  bool is_held_ = false;
};

}  // namespace

std::unique_ptr<Thread> FiberThreads::Spawn(std::string name,
                                            std::function<void(std::stop_token)> body) {
  return std::make_unique<FiberThread>(scheduler_, owner_, std::move(name), std::move(body));
}

void FiberThreads::SpawnDetached(std::string name, std::function<void()> body) {
  scheduler_.Spawn(owner_, std::move(name), std::move(body));
}

std::unique_ptr<Monitor> FiberThreads::NewMonitor() {
  return std::make_unique<FiberMonitor>(scheduler_, clock_, chance_, yield_one_in_);
}

bool FiberThreads::SleepFor(Milliseconds duration, std::stop_token stop) {
  const Instant until = clock_.Monotonic() + duration;
  const FiberId me = scheduler_.Current();
  const std::stop_callback wake(stop, [this, me] { scheduler_.Wake(me); });
  while (!stop.stop_requested() && clock_.Monotonic() < until) {
    scheduler_.Park(clock_.InTheWorld(until));
  }
  return !stop.stop_requested();
}

std::unique_ptr<Thread> NoThreads::Spawn(std::string, std::function<void(std::stop_token)>) {
  CHECK_MSG(false, "an indivisible act has a thread of its own");
  return nullptr;
}
void NoThreads::SpawnDetached(std::string, std::function<void()>) {
  CHECK_MSG(false, "an indivisible act has a thread of its own");
}
std::unique_ptr<Monitor> NoThreads::NewMonitor() { return std::make_unique<NobodyElse>(); }
bool NoThreads::SleepFor(Milliseconds, std::stop_token) {
  CHECK_MSG(false, "an indivisible act sleeps");
  return false;
}

}  // namespace vmonce::sim
