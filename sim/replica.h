// One `vmonce serve` of a made-up world: the unmodified service, engine and workflows, wired as
// app/node wires them, without a network in front.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "service/vm_service.h"
#include "sim/scheduler.h"

namespace vmonce::sim {

struct Stage;

class Replica {
 public:
  // The name stays over its restarts; what a restart makes new is the process.
  Replica(Stage& stage, int number);
  ~Replica();

  // A new process, unless one is there.
  void Boot();
  // kill -9. Never returns when the caller runs in it.
  void Crash();
  // SIGTERM; the caller waits, at most `patience`. False: it was killed after that.
  bool Stop(Milliseconds patience);

  bool IsUp() const { return process_ != nullptr; }
  Owner owner() const { return owner_; }
  const std::string& name() const { return name_; }
  void SetSkew(Milliseconds skew);
  // Its computer sleeps now and then; the caller runs in it.
  void MaySleep();

  // Runs a request in it, as a server's thread would. False: nobody listens there.
  bool Post(std::function<void(service::VmService&)> request);
  // Marks what its reconciler did since its start.
  void MarkWhatHappened() const;

 private:
  struct Process;

  Stage& stage_;
  const int number_;
  const std::string name_;
  Owner owner_ = kWorld;
  int boots_ = 0;
  Milliseconds skew_{0};
  Milliseconds slept_{0};
  Instant awake_until_{};  // It does not sleep before.
  std::unique_ptr<Process> process_;
};

}  // namespace vmonce::sim
