// The doors of one replica, with everything that may go wrong in front of and behind them.
#pragma once

#include <memory>
#include <string>

#include "hypervisor/fault_plan.h"
#include "ports/hypervisor.h"
#include "ports/ledger.h"

namespace vmonce::sim {

struct Stage;

// `who` names the replica in stories. All of it outlives the doors.
std::unique_ptr<ports::Ledger> NewLedgerDoor(Stage& stage, std::string who);
std::unique_ptr<ports::Hypervisor> NewHostDoor(Stage& stage, std::string who, std::string host,
                                               std::unique_ptr<ports::Hypervisor> base);
// What the machine of that number does wrong.
std::shared_ptr<hypervisor::FaultPlan> NewHostFaults(Stage& stage, std::size_t machine);

}  // namespace vmonce::sim
