// What one thread waits at and others ring. A thread that waits at a bell of its own is woken
// alone: where many wait at one condition, each word to one of them wakes them all.
#pragma once

#include <memory>

#include "base/threads.h"

namespace vmonce {

// Thread-safe. Whoever rings shares its ownership with whoever waits, who may be gone at once.
class Doorbell {
 public:
  explicit Doorbell(Threads& threads) : monitor_(threads.NewMonitor()) {}

  void Ring() {
    {
      MonitorLock lock(*monitor_);
      is_rung_ = true;
    }
    monitor_->NotifyOne();
  }

  // Returns true when it was rung since the last time; false when `deadline` has passed.
  bool WaitUntil(Instant deadline) {
    MonitorLock lock(*monitor_);
    bool in_time = true;
    while (!is_rung_ && in_time) in_time = monitor_->WaitUntil(deadline);
    const bool was_rung = is_rung_;
    is_rung_ = false;
    return was_rung;
  }

 private:
  const std::unique_ptr<Monitor> monitor_;
  bool is_rung_ GUARDED_BY(*monitor_) = false;
};

}  // namespace vmonce
