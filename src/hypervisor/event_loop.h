// libvirt's event loop on a thread: embedded QEMU and keepalives need it running.
#pragma once

#include <memory>

#include "base/threads.h"

namespace vmonce::hypervisor {

// libvirt has one loop in a process, which is not made for two threads: the hosts of a process
// share one of these. Thread-safe; `threads` outlives it. Gone after the last connection is closed.
class EventLoop final {
 public:
  explicit EventLoop(Threads& threads);
  ~EventLoop();

  // Before the first connection is opened. Twice is once.
  void Start();

 private:
  Threads& threads_;
  const std::unique_ptr<Monitor> monitor_;
  int timer_ GUARDED_BY(*monitor_) = -1;
  std::unique_ptr<Thread> thread_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::hypervisor
