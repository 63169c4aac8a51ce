// The doors of base/threads.h and base/clock.h in a made-up world.
#pragma once

#include <memory>
#include <vector>

#include "base/threads.h"
#include "sim/scheduler.h"

namespace vmonce::sim {

// When a world's ledger was begun: 2026-01-01T00:00:00Z, as far as its own clock tells.
inline constexpr std::int64_t kWorldBeganMs = 1'767'225'600'000;

// One computer's clock. The monotonic one runs as everybody's, but does not count what its computer
// sleeps; the time of day may be set, as long as it never goes back (base/clock.h).
class WorldClock final : public Clock {
 public:
  explicit WorldClock(const Scheduler& scheduler) : scheduler_(scheduler) {}

  Time Now() override {
    const auto elapsed =
        std::chrono::duration_cast<Milliseconds>(scheduler_.now().time_since_epoch());
    told_ = std::max(told_, FromUnixMs(kWorldBeganMs) + elapsed + skew_);
    return told_;
  }
  Instant Monotonic() override { return scheduler_.now() - slept_; }

  void SetSkew(Milliseconds skew) { skew_ = skew; }
  // In all, since the world began.
  void SetSlept(Milliseconds slept) { slept_ = slept; }
  // When this clock will show `own`, should its computer never sleep again.
  Instant InTheWorld(Instant own) const { return own == kNever ? own : own + slept_; }

 private:
  const Scheduler& scheduler_;
  Milliseconds skew_{0};
  Milliseconds slept_{0};
  Time told_{};
};

// Threads of one process, as fibers that die with it.
class FiberThreads final : public Threads {
 public:
  // Deadlines are of `clock`, which with the others outlives it. `yield_one_in`: how often another
  // fiber gets its turn before a lock is taken; 0 is never.
  FiberThreads(Scheduler& scheduler, Owner owner, WorldClock& clock, Chance& chance,
               int yield_one_in)
      : scheduler_(scheduler),
        owner_(owner),
        clock_(clock),
        chance_(chance),
        yield_one_in_(yield_one_in) {}

  std::unique_ptr<Thread> Spawn(std::string name,
                                std::function<void(std::stop_token)> body) override;
  void SpawnDetached(std::string name, std::function<void()> body) override;
  std::unique_ptr<Monitor> NewMonitor() override;
  bool SleepFor(Milliseconds duration, std::stop_token stop) override;

 private:
  Scheduler& scheduler_;
  const Owner owner_;
  WorldClock& clock_;
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
