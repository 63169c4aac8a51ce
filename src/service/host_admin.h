// What an operator declares of hosts.
#pragma once

#include "service/queries.h"
#include "service/reconciler.h"
#include "workflows/fleet.h"

namespace vmonce::service {

// Thread-safe. What it is given outlives it.
class HostAdmin {
 public:
  HostAdmin(workflows::Fleet& fleet, const Queries& queries, Reconciler& reconciler)
      : fleet_(fleet), queries_(queries), reconciler_(reconciler) {}

  // Answers the host as it stands then; what follows from it is done by a sweep that begins at
  // once. Repeating it changes nothing. Blocks on the ledger, never on a host. host_not_found:
  // neither the ledger nor the configuration knows it.
  Answered<HostView> Declare(const model::HostId& id, model::HostState state);

 private:
  workflows::Fleet& fleet_;
  const Queries& queries_;
  Reconciler& reconciler_;
};

}  // namespace vmonce::service
