#include "hypervisor/event_loop.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

namespace vmonce::hypervisor {
namespace {

// How soon a loop without events notices that it is to stop.
constexpr int kTickMs = 250;

}  // namespace

EventLoop::EventLoop(Threads& threads) : threads_(threads), monitor_(threads.NewMonitor()) {}

void EventLoop::Start() {
  MonitorLock lock(*monitor_);
  if (thread_ != nullptr) return;
  // What fails is told by the call that fails; libvirt would also write it on stderr.
  virSetErrorFunc(nullptr, [](void*, virErrorPtr) {});
  virEventRegisterDefaultImpl();
  timer_ = virEventAddTimeout(kTickMs, [](int, void*) {}, nullptr, nullptr);
  thread_ = threads_.Spawn("libvirt-events", [](std::stop_token stop) {
    while (!stop.stop_requested()) virEventRunDefaultImpl();
  });
}

EventLoop::~EventLoop() {
  MonitorLock lock(*monitor_);
  if (thread_ == nullptr) return;
  thread_->RequestStop();
  thread_->Join();
  if (timer_ >= 0) virEventRemoveTimeout(timer_);
}

}  // namespace vmonce::hypervisor
