// Host ports: reserved for a VM in the transaction that places it, given back in the one that takes
// it from its host.
#pragma once

#include <vector>

#include "ledger/transaction.h"
#include "model/vm.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

// Sets `vm.forwards`, whose row the caller writes. False, and nothing changed, when a port that was
// asked for is another's or to be avoided, or when the range has none left. Precondition: the VM is
// on a host.
bool ReservePorts(Tx& tx, model::Vm& vm, const ports::PortPlan& plan);
// Nothing when it has none.
void ReleasePorts(Tx& tx, model::Vm& vm);

// In the order of their ids.
std::vector<model::HostId> HostsUsingPort(Db& db, const model::HostPort& port);
// Whether some active host has the port free. True also when there is no active host: that is
// nothing that can be said of ports.
bool IsFreeSomewhere(Db& db, const model::HostPort& port);

}  // namespace vmonce::ledger
