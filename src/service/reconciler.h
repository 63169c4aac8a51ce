// Sweeps every host by period and on demand, and keeps the last report of each.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/threads.h"
#include "engine/periodic.h"
#include "workflows/reconcile_vms.h"

namespace vmonce::service {

struct LastSweep {
  workflows::ReconcileReport report;
  Time at{};
};

// Thread-safe. What it is given outlives it.
class Reconciler {
 public:
  Reconciler(const workflows::WorkflowParts& parts, Threads& threads, Logger& logger,
             workflows::ReconcileSettings settings, Milliseconds period);
  ~Reconciler();

  void Start();
  void Stop();

  // Sweeps all hosts one after the other, now; waits for a sweep of the same host that is under way
  // first.
  std::vector<workflows::ReconcileReport> SweepAll();
  // Asks for a sweep of this host that begins after this call; does not wait. A host that is not in
  // the configuration is not swept.
  void Trigger(const model::HostId& host);
  std::vector<LastSweep> LastSweeps() const;
  // What all sweeps did since the start: "missing", "found", "made_due", "quarantined", "removed",
  // "restarted", "stopped", "alarmed".
  std::map<std::string, std::int64_t> ActionCounts() const;
  // Of all hosts, in their last sweeps.
  int SecondCopies() const;

 private:
  struct HostLoop {
    model::HostId id;
    std::unique_ptr<Monitor> sweeping;  // Held during a sweep: one at a time per host.
    std::unique_ptr<engine::Periodic> loop;
  };
  workflows::ReconcileReport Sweep(HostLoop& host);

  const workflows::WorkflowParts& parts_;
  workflows::ReconcileVms sweeper_;
  std::vector<std::unique_ptr<HostLoop>> hosts_;
  std::unique_ptr<Monitor> monitor_;
  std::map<model::HostId, LastSweep> last_ GUARDED_BY(*monitor_);
  std::map<std::string, std::int64_t> actions_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::service
