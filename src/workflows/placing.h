// Where a new VM goes: its host, and the ports of the host that lead to it.
#pragma once

#include <optional>

#include "workflows/parts.h"

namespace vmonce::workflows {

// Sets `host`, or answers why the step cannot be done now.
std::optional<engine::StepResult> ChooseHost(const WorkflowParts& parts, const model::Vm& vm,
                                             std::optional<model::HostId>& host);

// Asks in `change` for the ports that the VM is to have on the host where it is, or goes. What some
// program of that host has already is avoided, where that can be seen: of ports that nobody asked
// for by number, others are taken. Answers why the step cannot be done now.
std::optional<engine::StepResult> PlanPorts(const WorkflowParts& parts, const model::Vm& vm,
                                            ports::VmChange& change);

// A start was answered with a failure, and a look proved that it had no effect. Absent: the VM's
// ports are not why. Otherwise: the step back to `place`, which finds others; a bounded number of
// times.
std::optional<engine::StepResult> AfterFailedStart(const WorkflowParts& parts,
                                                   const engine::StepContext& context);

// Likewise, of a VM that was made long ago: its ports are its user's, and none is changed. Absent:
// they are not seen to be in use.
std::optional<engine::StepResult> WhyPortsTaken(const WorkflowParts& parts, const model::Vm& vm);

}  // namespace vmonce::workflows
