// libvirt's event loop on a thread: embedded QEMU and keepalives need it running.
#pragma once

#include <memory>

#include "base/threads.h"

namespace vmonce::hypervisor {

// libvirt has one loop in a process; several of these objects take turns in running it. Made before
// the first connection is opened, gone after the last is closed.
class EventLoop final {
 public:
  explicit EventLoop(Threads& threads);
  ~EventLoop();

 private:
  int timer_ = -1;
  std::unique_ptr<Thread> thread_;
};

}  // namespace vmonce::hypervisor
