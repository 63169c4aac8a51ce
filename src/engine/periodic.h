// Runs an activation every period and on demand. An activation takes no input: what it does follows
// from the world and the ledger alone, so that one run more or less changes nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/threads.h"

namespace vmonce::engine {

// Thread-safe.
class Periodic {
 public:
  // `name` is at most 15 bytes. The first activation runs at once after Start().
  Periodic(std::string name, Milliseconds period, std::function<void()> activation, Clock& clock,
           Threads& threads);
  ~Periodic();

  void Start();
  void Stop();
  // Asks for a run that begins after this call.
  void Trigger();

 private:
  void Loop();

  const std::string name_;
  const Milliseconds period_;
  const std::function<void()> activation_;
  Clock& clock_;
  Threads& threads_;
  std::unique_ptr<Monitor> monitor_;
  bool is_triggered_ GUARDED_BY(*monitor_) = false;
  bool is_stopping_ GUARDED_BY(*monitor_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace vmonce::engine
