// The reconciler's sweep of one host (protocol section 11): what is there against what the ledger
// wants. It takes no input, creates nothing, and touches nothing that does not carry our ledger's
// label.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/vm.h"
#include "workflows/parts.h"

namespace vmonce::workflows {

struct ReconcileSettings {
  Milliseconds orphan_grace{};  // How long the machine of a deleted VM is kept when it reappears.
  Milliseconds
      stray_age{};  // Younger strays may belong to work in flight: longest lease and settle time.
  int sightings = 2;
  int removals_min = 3;
  int removals_percent = 10;
};

struct ReconcileReport {
  model::HostId host;
  int domains = 0;  // On the host, ours or not.
  int ours = 0;
  int missing = 0;    // Turned to missing in this sweep.
  int found = 0;      // Turned back to ready in this sweep.
  int restarted = 0;  // Starts that were begun here for machines that their host took down.
  int stuck = 0;      // Came down again after each of a number of restarts: a person should look.
  int made_due = 0;   // Operations woken because their machine was seen.
  int strays = 0;     // Ours by label, wanted by no row.
  int quarantined = 0;
  int removed = 0;
  int kept_volumes = 0;   // Disks that no VM wants: reported, never removed by themselves.
  int stopped = 0;        // Moved away or deleted while the host was dead, and stopped now.
  int second_copies = 0;  // Machines whose row names another host: told, left alone.
  // A second copy was seen, or too much would have been removed (then nothing was).
  bool is_alarmed = false;
  std::string problem;  // Why the sweep could not be done; empty when it was.
};

// Called by one thread at a time per host.
class ReconcileVms {
 public:
  ReconcileVms(const WorkflowParts& parts, Logger& logger, ReconcileSettings settings);

  ReconcileReport Sweep(const model::HostId& host);

 private:
  struct View;

  Status Read(const model::HostId& host, View& view) const;
  void CompareRows(const View& view, ReconcileReport& report) const;
  void CompareRow(const View& view, const model::Vm& row, ReconcileReport& report,
                  std::vector<ports::Observation>& observations) const;
  void Restart(const View& view, ReconcileReport& report) const;
  void GiveUpOn(const model::HostId& host, ReconcileReport& report) const;
  Status WelcomeBack(const View& view, ReconcileReport& report) const;
  Status HandleStrays(const View& view, ReconcileReport& report) const;
  void Act(const View& view, const ports::StraySighting& stray, bool may_remove,
           ReconcileReport& report) const;
  ports::EffectGuard GuardOf(const View& view, const model::VmId& vm) const;
  bool IsRemovable(const View& view, const ports::StraySighting& stray) const;
  void SweepImages(const View& view) const;
  void CountVolumes(const View& view, ReconcileReport& report) const;

  const WorkflowParts& parts_;
  Logger& logger_;
  const ReconcileSettings settings_;
};

}  // namespace vmonce::workflows
