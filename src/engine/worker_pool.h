// The workers of one process: a dispatcher that takes due operations from the ledger when somebody
// is free, and threads that run them. Operations leased at acceptance are handed over directly.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "engine/worker.h"

namespace vmonce::engine {

struct PoolBounds {
  int workers = 0;
  Milliseconds poll{};    // How long work that nobody announced (another process's) may wait.
  Milliseconds settle{};  // Of the slowest host: what TakeDue() writes for leases that ran out.
};

// Thread-safe.
class WorkerPool {
 public:
  WorkerPool(const WorkerParts& parts, Threads& threads, PoolBounds bounds);
  // Stops and joins. Operations that run are left where they stand when their current step ends.
  ~WorkerPool();

  void Start();
  // Nothing new is begun after this.
  void Stop();

  // How many more operations could be run at once now. A hint: it may have changed when it is read.
  int FreeWorkers() const;
  // Runs an operation that was leased to this process by a call that began at `asked`.
  void HandOver(model::Operation operation, Instant asked);
  // Something became due: look now.
  void Notify();

 private:
  struct Job {
    model::Operation operation;
    Instant asked;
  };

  void Dispatch(std::stop_token stop);
  void Work(std::stop_token stop);
  // Leases what is due for free workers; answers when to look again.
  Instant TakeDue();

  const WorkerParts parts_;
  Threads& threads_;
  const PoolBounds bounds_;
  std::unique_ptr<Monitor> jobs_monitor_;
  std::deque<Job> jobs_ GUARDED_BY(*jobs_monitor_);
  int busy_ GUARDED_BY(*jobs_monitor_) = 0;
  bool is_stopping_ GUARDED_BY(*jobs_monitor_) = false;

  std::unique_ptr<Monitor> dispatch_monitor_;
  bool is_notified_ GUARDED_BY(*dispatch_monitor_) = false;
  bool is_dispatch_stopping_ GUARDED_BY(*dispatch_monitor_) = false;

  std::vector<std::unique_ptr<Thread>> running_;
};

}  // namespace vmonce::engine
