// The doors of base/threads.h and base/clock.h in a made-up world.
#pragma once

#include <memory>
#include <vector>

#include "base/threads.h"
#include "sim/scheduler.h"

namespace vmonce::sim {

// When a world's ledger was begun: 2026-01-01T00:00:00Z, as far as its own clock tells.
inline constexpr std::int64_t kWorldBeganMs = 1'767'225'600'000;

// One computer's clock. The monotonic one is everybody's; the time of day may be set, as long as it
// never goes back (base/clock.h).
class WorldClock final : public Clock {
 public:
  explicit WorldClock(const Scheduler& scheduler) : scheduler_(scheduler) {}

  Time Now() override {
    const auto elapsed =
        std::chrono::duration_cast<Milliseconds>(scheduler_.now().time_since_epoch());
    told_ = std::max(told_, FromUnixMs(kWorldBeganMs) + elapsed + skew_);
    return told_;
  }
  Instant Monotonic() override { return scheduler_.now(); }

  void SetSkew(Milliseconds skew) { skew_ = skew; }

 private:
  const Scheduler& scheduler_;
  Milliseconds skew_{0};
  Time told_{};
};

// Threads of one process, as fibers that die with it.
class FiberThreads final : public Threads {
 public:
  // `yield_one_in`: how often another fiber gets its turn before a lock is taken; 0 is never.
  FiberThreads(Scheduler& scheduler, Owner owner, Chance& chance, int yield_one_in)
      : scheduler_(scheduler), owner_(owner), chance_(chance), yield_one_in_(yield_one_in) {}

  std::unique_ptr<Thread> Spawn(std::string name,
                                std::function<void(std::stop_token)> body) override;
  void SpawnDetached(std::string name, std::function<void()> body) override;
  std::unique_ptr<Monitor> NewMonitor() override;
  bool SleepFor(Milliseconds duration, std::stop_token stop) override;

 private:
  Scheduler& scheduler_;
  const Owner owner_;
  Chance& chance_;
  const int yield_one_in_;
};

// For what is one indivisible act in the world: a ledger's transaction, a host's change. Nobody
// else runs meanwhile, so nobody ever waits; who would is a bug (CHECK).
class NoThreads final : public Threads {
 public:
  std::unique_ptr<Thread> Spawn(std::string, std::function<void(std::stop_token)>) override;
  void SpawnDetached(std::string, std::function<void()>) override;
  std::unique_ptr<Monitor> NewMonitor() override;
  bool SleepFor(Milliseconds, std::stop_token) override;
};

}  // namespace vmonce::sim
