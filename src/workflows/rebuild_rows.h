// The rows of a rebuilt ledger, made of what machines and their labels tell. Values in, values out.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "model/vm.h"
#include "ports/hypervisor.h"
#include "ports/ledger_rebuild.h"

namespace vmonce::workflows {

// A machine with this ledger's label, as it was found.
struct FoundMachine {
  model::HostId host;
  ports::DomainSighting seen;  // With its label.
  bool was_started = true;     // At some time; told of what is off now.
};

struct RebuildMoment {
  Time now{};
  bool run_stopped = false;  // What is off, and once ran, is to run.
  std::function<model::VmId()> new_id;
};

// Why these machines, of one operation, cannot be one create's; absent when they can.
std::optional<std::string> WhyNotTogether(std::span<const FoundMachine> machines);

// The create that the ledger does not know: ended, with what was found of it. An index that no
// machine has was never made, or was deleted: it is told as deleted, and is never made again.
// Precondition: WhyNotTogether() has nothing to say, and there is a machine.
ports::RebuiltOperation NewRows(std::span<const FoundMachine> machines,
                                const RebuildMoment& moment);

// The label shows a higher fence than the row: its operation went on after the copy was made.
bool WentOn(const model::Operation& operation, const model::Label& label);

// The operation's next taking gets a fence above the label's: a worker of a restored ledger would
// be fenced for ever.
void RaiseFence(const model::Label& label, model::Operation& operation);

// The item goes on, with a look that finds the machine; the VM is where the machine is.
void HandBack(const FoundMachine& machine, Time now, model::Operation& operation, model::Item& item,
              model::Vm& vm);

// A create of a restored copy, whose machine is nowhere: it may have been made and deleted since,
// so it is not made.
void GiveUp(model::Item& item, model::Vm& vm);

// The operation's end, if all its items have ended.
void EndIfAllHave(Time now, model::Operation& operation);

// The VM's host is where its one machine is.
void MoveTo(const FoundMachine& machine, model::Vm& vm);

}  // namespace vmonce::workflows
