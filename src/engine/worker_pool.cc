#include "engine/worker_pool.h"

#include <fmt/format.h>

#include "base/check.h"

namespace vmonce::engine {

WorkerPool::WorkerPool(const WorkerParts& parts, Threads& threads, PoolBounds bounds)
    : parts_(parts),
      threads_(threads),
      bounds_(bounds),
      jobs_monitor_(threads.NewMonitor()),
      dispatch_monitor_(threads.NewMonitor()) {
  CHECK(bounds_.workers >= 0);
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Start() {
  CHECK(running_.empty() && bounds_.workers > 0);
  for (int i = 0; i < bounds_.workers; ++i) {
    running_.push_back(
        threads_.Spawn(fmt::format("worker-{}", i), [this](std::stop_token stop) { Work(stop); }));
  }
  running_.push_back(threads_.Spawn("dispatch", [this](std::stop_token stop) { Dispatch(stop); }));
}

void WorkerPool::Stop() {
  {
    MonitorLock lock(*jobs_monitor_);
    is_stopping_ = true;
  }
  jobs_monitor_->NotifyAll();
  {
    MonitorLock lock(*dispatch_monitor_);
    is_dispatch_stopping_ = true;
  }
  dispatch_monitor_->NotifyAll();
  for (const auto& thread : running_) thread->RequestStop();
  for (const auto& thread : running_) thread->Join();
  running_.clear();
}

int WorkerPool::FreeWorkers() const {
  MonitorLock lock(*jobs_monitor_);
  return std::max(0, bounds_.workers - busy_ - static_cast<int>(jobs_.size()));
}

void WorkerPool::HandOver(model::Operation operation, Instant asked) {
  {
    MonitorLock lock(*jobs_monitor_);
    jobs_.push_back({std::move(operation), asked});
  }
  jobs_monitor_->NotifyOne();
}

void WorkerPool::Notify() {
  // Whoever becomes free looks for itself; until then there is nobody to take anything.
  if (FreeWorkers() == 0) return;
  {
    MonitorLock lock(*dispatch_monitor_);
    is_notified_ = true;
  }
  dispatch_monitor_->NotifyOne();
}

void WorkerPool::Work(std::stop_token stop) {
  Worker worker(parts_);
  while (!stop.stop_requested()) {
    std::optional<Job> job;
    {
      MonitorLock lock(*jobs_monitor_);
      while (jobs_.empty() && !is_stopping_) jobs_monitor_->Wait();
      // What is still queued was leased and never begun: its lease runs out, and the next start
      // takes it over.
      if (is_stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      ++busy_;
    }
    worker.Run(std::move(job->operation), job->asked, stop);
    {
      MonitorLock lock(*jobs_monitor_);
      --busy_;
    }
    Notify();
  }
}

void WorkerPool::Dispatch(std::stop_token stop) {
  while (!stop.stop_requested()) {
    {
      MonitorLock lock(*dispatch_monitor_);
      is_notified_ = false;
    }
    const Instant again = TakeDue();
    MonitorLock lock(*dispatch_monitor_);
    while (!is_notified_ && !is_dispatch_stopping_) {
      if (!dispatch_monitor_->WaitUntil(again)) break;
    }
    if (is_dispatch_stopping_) return;
  }
}

Instant WorkerPool::TakeDue() {
  const Instant now = parts_.clock.Monotonic();
  const Instant poll = now + bounds_.poll;
  const int free = FreeWorkers();
  if (free == 0) return poll;  // A worker that becomes free notifies.

  Result<std::vector<model::Operation>> taken =
      parts_.ledger.TakeDue(parts_.replica, parts_.leases.ttl(), bounds_.settle, free);
  if (!taken) {
    parts_.logger.Warning("take_due_failed", {{"cause", taken.error().detail}});
    return poll;
  }
  const bool is_more = static_cast<int>(taken->size()) == free;
  const bool is_any = !taken->empty();
  for (model::Operation& operation : *taken) HandOver(std::move(operation), now);
  if (is_any) return is_more ? now : poll;

  const Result<std::optional<Time>> due = parts_.ledger.NextDue();
  if (!due) {
    parts_.logger.Warning("next_due_failed", {{"cause", due.error().detail}});
    return poll;
  }
  if (!due->has_value()) return poll;
  const Milliseconds wait = **due - parts_.ledger.Now();
  return wait > Milliseconds(0) ? std::min(poll, now + wait) : now;
}

}  // namespace vmonce::engine
