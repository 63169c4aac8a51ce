// A few threads and a short queue for handlers that block. What does not fit is refused at once: a
// queue that grows only makes everybody late.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/threads.h"

namespace vmonce::http {

// Thread-safe.
class BlockingPool final {
 public:
  // `threads` outlives this. `thread_count` > 0.
  BlockingPool(Threads& threads, std::size_t thread_count, std::size_t max_queued);
  // Stops.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // False, and `task` is left as it was, when every thread is busy and the queue is full, or after
  // Stop.
  bool TrySubmit(std::move_only_function<void()>& task);

  // Drops what is queued (destroying the tasks) and waits for what runs. Idempotent; not from a
  // task.
  void Stop();

 private:
  void Work();

  const std::size_t max_queued_;
  const std::unique_ptr<Monitor> monitor_;
  std::deque<std::move_only_function<void()>> queue_ GUARDED_BY(*monitor_);
  std::size_t idle_ GUARDED_BY(*monitor_) = 0;
  bool stopping_ GUARDED_BY(*monitor_) = false;
  std::vector<std::unique_ptr<Thread>> workers_;
};

}  // namespace vmonce::http
