// What the workflows are built of, and the few things they all do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/result.h"
#include "base/seal.h"
#include "engine/saga.h"
#include "model/vm.h"
#include "ports/hypervisor.h"
#include "ports/ledger.h"
#include "workflows/fleet.h"
#include "workflows/image_watch.h"

namespace vmonce::workflows {

struct WorkflowSettings {
  Milliseconds stop_grace{};     // A guest has so long to shut down before it is forced.
  Milliseconds observe_every{};  // While it does.
  Milliseconds ask_again{};      // A guest that still boots misses the first asking.
};

// All of it outlives the workflows.
struct WorkflowParts {
  ports::Ledger& ledger;
  Fleet& fleet;
  const Sealer& sealer;
  Clock& clock;
  Random& random;
  WorkflowSettings settings;
  ImageWatch* image_watch = nullptr;  // Null: the configuration's files are not looked at.
  // Null: nothing that was brought to a host is removed there.
  ports::ImageRegistry* stored_images = nullptr;
};

model::VmId SubjectOf(const engine::StepContext& context);

// The VM's row now. A row that is not there is kInternal: rows outlive their operations.
Result<model::Vm> LoadVm(const WorkflowParts& parts, const engine::StepContext& context);

// The door to the VM's host. kUnavailable when the configuration no longer has that host, an
// operator declared it dead, or its labels were not yet compared with the ledger.
Result<ports::Hypervisor*> HostOf(const WorkflowParts& parts, const model::Vm& vm);

// True when an operator declared the VM's host dead: nothing is done there, and what reappears
// there is an orphan.
Result<bool> IsOnDeadHost(const WorkflowParts& parts, const model::Vm& vm);

// After a start, a host is waited for until it was tried once, and for as long as the ledger is an
// older copy: that is no failure of a step.
// Absent: go on.
std::optional<engine::StepResult> AwaitHost(const WorkflowParts& parts, const model::Vm& vm);

// Stands beside every effect: see model::EffectFence.
model::Fence FenceOf(const engine::StepContext& context);
ports::EffectGuard GuardOf(const engine::StepContext& context);

// An event about a VM: its id, state, operation and host, no secrets.
model::Event VmEvent(const WorkflowParts& parts, std::string_view type, const model::Vm& vm,
                     const model::OperationId& operation);
model::Event OperationEvent(const WorkflowParts& parts, const model::Operation& operation);

// True when `seen` carries this ledger's label for this very VM's creating operation.
bool IsOurs(const WorkflowParts& parts, const ports::DomainSighting& seen, const model::Vm& vm);

// True when no call for the VM is out on its host in this process; a dead host's are waited for no
// more.
bool IsSettled(const WorkflowParts& parts, const engine::StepContext& context);

// True when another operation has marked the VM for deletion.
Result<bool> IsMarked(const WorkflowParts& parts, const engine::StepContext& context);

// A step that takes the VM for this operation alone; waits while another holds it.
engine::StepResult Hold(const engine::StepContext& context);

}  // namespace vmonce::workflows
