// Callers that wait for an operation's end (`Prefer: wait`): they cost an entry here and no thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/threads.h"
#include "model/operation.h"

namespace vmonce::service {

// Thread-safe.
class Waiters {
 public:
  // Called once: true when the operation ended, false when the deadline passed first (or at Stop).
  using Done = std::function<void(bool has_ended)>;

  Waiters(Clock& clock, Threads& threads);
  ~Waiters();
  void Start();
  void Stop();

  // `done` may be called at any time after this begins. The caller reads the operation's state
  // after this call, and calls Ended() itself when it has ended already: so no end is missed.
  void Wait(const model::OperationId& operation, Instant deadline, Done done);
  void Ended(const model::OperationId& operation);

 private:
  struct Waiter {
    model::OperationId operation;
    Done done;
  };
  void Expire(std::stop_token stop);

  Clock& clock_;
  Threads& threads_;
  std::unique_ptr<Monitor> monitor_;
  std::uint64_t next_ GUARDED_BY(*monitor_) = 0;
  // By deadline, then by number; and each operation's waiters.
  std::map<std::pair<Instant, std::uint64_t>, Waiter> waiting_ GUARDED_BY(*monitor_);
  std::multimap<model::OperationId, std::pair<Instant, std::uint64_t>> of_ GUARDED_BY(*monitor_);
  bool is_stopping_ GUARDED_BY(*monitor_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace vmonce::service
