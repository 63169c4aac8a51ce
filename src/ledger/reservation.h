// Names, quotas and host capacity: decided from the rows of the same transaction, then taken or
// given back there.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ledger/transaction.h"
#include "model/vm.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

struct ReservationRequest {
  const model::ProjectId& project;
  std::span<const std::string> names;
  const model::Resources& demand;
  const model::Resources& quota;
  const model::Resources& capacity;
};

// Why these VMs may not be reserved now; absent when they may. Writes nothing.
std::optional<ports::Declined> WhyNotReserve(Tx& tx, const ReservationRequest& request);

// The VM that holds the name now.
std::optional<model::VmId> NameHolder(Tx& tx, const model::ProjectId& project,
                                      const std::string& name);

// Each changes `vm`, whose row the caller writes, and the counters.
void TakeReservation(Tx& tx, model::Vm& vm);
void ReleaseReservation(Tx& tx, model::Vm& vm);  // Nothing when it holds none.
// Moves the VM's demand from the host it is on, if any, to this one. False, and nothing changed,
// when that is not active or has no room. Precondition: the VM holds its reservation.
bool PlaceOn(Tx& tx, model::Vm& vm, const model::HostId& host);
void LeaveHost(Tx& tx, model::Vm& vm);  // Nothing when it is on none.

}  // namespace vmonce::ledger
