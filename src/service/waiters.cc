#include "service/waiters.h"

namespace vmonce::service {

Waiters::Waiters(Clock& clock, Threads& threads)
    : clock_(clock), threads_(threads), monitor_(threads.NewMonitor()) {}

Waiters::~Waiters() { Stop(); }

void Waiters::Start() {
  thread_ = threads_.Spawn("waiters", [this](std::stop_token stop) { Expire(stop); });
}

void Waiters::Stop() {
  std::vector<Done> left;
  {
    MonitorLock lock(*monitor_);
    is_stopping_ = true;
    for (auto& [at, waiter] : waiting_) left.push_back(std::move(waiter.done));
    waiting_.clear();
    of_.clear();
  }
  monitor_->NotifyAll();
  if (thread_) thread_->Join();
  thread_.reset();
  for (const Done& done : left) done(false);
}

void Waiters::Wait(const model::OperationId& operation, Instant deadline, Done done) {
  {
    MonitorLock lock(*monitor_);
    if (!is_stopping_) {
      const std::pair at(deadline, next_++);
      waiting_.emplace(at, Waiter{operation, std::move(done)});
      of_.emplace(operation, at);
      done = nullptr;
    }
  }
  if (done) {
    done(false);
  } else {
    monitor_->NotifyOne();
  }
}

void Waiters::Ended(const model::OperationId& operation) {
  std::vector<Done> ended;
  {
    MonitorLock lock(*monitor_);
    const auto [first, last] = of_.equal_range(operation);
    for (auto at = first; at != last; ++at) {
      const auto found = waiting_.find(at->second);
      ended.push_back(std::move(found->second.done));
      waiting_.erase(found);
    }
    of_.erase(first, last);
  }
  for (const Done& done : ended) done(true);
}

void Waiters::Expire(std::stop_token) {
  while (true) {
    std::vector<Done> expired;
    {
      MonitorLock lock(*monitor_);
      if (is_stopping_) return;
      const Instant now = clock_.Monotonic();
      while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
        const auto first = waiting_.begin();
        const auto [from, to] = of_.equal_range(first->second.operation);
        for (auto at = from; at != to; ++at) {
          if (at->second == first->first) {
            of_.erase(at);
            break;
          }
        }
        expired.push_back(std::move(first->second.done));
        waiting_.erase(first);
      }
      if (expired.empty()) {
        monitor_->WaitUntil(waiting_.empty() ? kNever : waiting_.begin()->first.first);
      }
    }
    for (const Done& done : expired) done(false);
  }
}

}  // namespace vmonce::service
