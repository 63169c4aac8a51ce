// What one sweep sees; for the files of ReconcileVms alone.
#pragma once

#include <map>
#include <set>

#include "model/vm.h"
#include "workflows/reconcile_vms.h"

namespace vmonce::workflows {

// The host as it was listed, then the ledger as it was read.
struct ReconcileVms::View {
  model::HostId host;
  ports::Hypervisor* hypervisor = nullptr;
  int domains = 0;
  std::map<model::VmId, ports::DomainSighting> ours;  // By our ledger's label.
  std::map<model::VmId, model::Vm> rows;              // Of this host, and of whatever was seen.
  std::set<model::VmId> in_tombstones;                // Among what was seen.
  std::set<model::VmId> moved_away;                   // Likewise: left this host while it was dead.
  bool is_returning = false;                          // The host was, when it was listed.
  Time now{};
};

}  // namespace vmonce::workflows
