// Runs everything in a made-up world as fibers on one thread: production code blocks as it always
// does, and whenever it waits, sleeps or passes a door, another fiber may run. Who runs next, and
// when, follows from the world's seed alone.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sim/chance.h"
#include "sim/stacks.h"

namespace vmonce::sim {

// What dies together: a process. The world itself never dies.
using Owner = int;
inline constexpr Owner kWorld = 0;

// Index of a fiber; never used again within one world.
using FiberId = std::size_t;

class Scheduler {
 public:
  // Both outlive it.
  Scheduler(Chance chance, Stacks& stacks);
  // Abandons what still runs: see Kill().
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  FiberId Spawn(Owner owner, std::string name, std::function<void()> body);
  // Runs fibers until that one has ended. False: it never will, since nobody can run any more, or
  // it did not within `turns` switches.
  bool RunUntilEnded(FiberId fiber, std::uint64_t turns);

  Instant now() const { return now_; }
  std::uint64_t turns() const { return turns_; }
  // Everybody oversleeps.
  void Leap(Milliseconds by) { now_ += by; }

  // --- Called by fibers only.
  FiberId Current() const { return current_; }
  Owner CurrentOwner() const { return fibers_[current_]->owner; }
  const std::string& CurrentName() const { return fibers_[current_]->name; }
  // Others may run first.
  void Yield();
  // Until Wake() or `deadline`; false when the latter came first.
  bool Park(Instant deadline);
  // Wakes a parked fiber; one that is not parked is left alone.
  void Wake(FiberId fiber);
  bool HasEnded(FiberId fiber) const { return fibers_[fiber]->state == State::kEnded; }

  // kill -9: no fiber of the owner ever runs again, and nothing of theirs is unwound or freed, as
  // nothing of a killed process is. When the caller is one of them this does not return.
  void Kill(Owner owner);
  // SIGSTOP: none of them runs before `until`.
  void Pause(Owner owner, Instant until);
  bool IsPaused(Owner owner) const;

 private:
  enum class State { kReady, kRunning, kParked, kEnded };
  struct Fiber {
    Owner owner = kWorld;
    std::string name;
    std::function<void()> body;
    State state = State::kReady;
    std::uint64_t sleep = 0;  // Which of its sleeps a timer is of.
    bool was_woken = false;
    boost::context::fiber context;
    Stacks::Stack stack;
  };
  struct Timer {
    Instant at;
    std::uint64_t order;  // Timers of one instant, as they were set.
    FiberId fiber;
    std::uint64_t sleep;
    bool operator>(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Stop {
    Owner owner;
    Instant until;
  };

  void Resume(FiberId fiber);
  // Back to the scheduler, from a fiber.
  void Switch();
  // Lets timers that are due make their fibers ready; false: there is none at all.
  bool AdvanceToNextTimer();
  void FireDue();
  void Abandon(Fiber& fiber);
  FiberId PickReady();
  // Nobody but the current fiber can run before `then`: it goes on without a switch.
  bool IsAloneUntil(Instant then) const;

  Chance chance_;
  Stacks& stacks_;
  Instant now_{};
  std::uint64_t turns_ = 0;
  std::uint64_t last_turn_ = 0;
  std::uint64_t order_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<FiberId> ready_;
  std::vector<Timer> timers_;  // A heap, the next one first.
  std::vector<Stop> stops_;
  FiberId current_ = 0;
  boost::context::fiber back_;  // To the scheduler, while a fiber runs.
};

}  // namespace vmonce::sim
