#include "http/pool.h"

#include <utility>

#include "base/check.h"

namespace vmonce::http {

BlockingPool::BlockingPool(Threads& threads, std::size_t thread_count, std::size_t max_queued)
    : max_queued_(max_queued), monitor_(threads.NewMonitor()) {
  CHECK(thread_count > 0);
  for (std::size_t i = 0; i < thread_count; ++i) {
    workers_.push_back(threads.Spawn("http-pool", [this](std::stop_token) { Work(); }));
  }
}

BlockingPool::~BlockingPool() { Stop(); }

bool BlockingPool::TrySubmit(std::move_only_function<void()>& task) {
  {
    const MonitorLock lock(*monitor_);
    // An idle thread takes one from the queue at once, so that those do not count against it.
    if (stopping_ || queue_.size() >= max_queued_ + idle_) return false;
    queue_.push_back(std::move(task));
  }
  monitor_->NotifyOne();
  return true;
}

void BlockingPool::Stop() {
  std::deque<std::move_only_function<void()>> dropped;
  {
    const MonitorLock lock(*monitor_);
    stopping_ = true;
    dropped.swap(queue_);
  }
  monitor_->NotifyAll();
  // Outside the lock: a task's destructor answers its client.
  dropped.clear();
  for (const std::unique_ptr<Thread>& worker : workers_) worker->Join();
  workers_.clear();
}

void BlockingPool::Work() {
  for (;;) {
    std::move_only_function<void()> task;
    {
      const MonitorLock lock(*monitor_);
      ++idle_;
      while (queue_.empty() && !stopping_) monitor_->Wait();
      --idle_;
      if (stopping_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace vmonce::http
