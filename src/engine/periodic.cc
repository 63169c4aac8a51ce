#include "engine/periodic.h"

namespace vmonce::engine {

Periodic::Periodic(std::string name, Milliseconds period, std::function<void()> activation,
                   Clock& clock, Threads& threads)
    : name_(std::move(name)),
      period_(period),
      activation_(std::move(activation)),
      clock_(clock),
      threads_(threads),
      monitor_(threads.NewMonitor()) {}

Periodic::~Periodic() { Stop(); }

void Periodic::Start() {
  thread_ = threads_.Spawn(name_, [this](std::stop_token) { Loop(); });
}

void Periodic::Stop() {
  {
    MonitorLock lock(*monitor_);
    is_stopping_ = true;
  }
  monitor_->NotifyAll();
  if (thread_) thread_->Join();
  thread_.reset();
}

void Periodic::Trigger() {
  {
    MonitorLock lock(*monitor_);
    is_triggered_ = true;
  }
  monitor_->NotifyAll();
}

void Periodic::Loop() {
  while (true) {
    {
      MonitorLock lock(*monitor_);
      if (is_stopping_) return;
      is_triggered_ = false;
    }
    activation_();
    const Instant next = clock_.Monotonic() + period_;
    MonitorLock lock(*monitor_);
    while (!is_stopping_ && !is_triggered_) {
      if (!monitor_->WaitUntil(next)) break;
    }
  }
}

}  // namespace vmonce::engine
