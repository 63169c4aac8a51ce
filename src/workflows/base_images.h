// What must be so of an image before a disk is made over it.
#pragma once

#include <optional>

#include "engine/saga.h"
#include "model/vm.h"
#include "ports/hypervisor.h"
#include "workflows/parts.h"

namespace vmonce::workflows {

// Why no disk may be made over the file of the configuration now; absent: go on.
std::optional<engine::StepResult> CheckImageFile(const WorkflowParts& parts, const model::Vm& vm);

// Sends a stored image to a host that cannot see its file, a piece in each try, and tells in the
// timeline how far it is; absent: all of it is there.
std::optional<engine::StepResult> BringImage(const engine::StepContext& context,
                                             ports::Hypervisor& host, const model::Vm& vm);

// What a disk of an image of the store is made over; absent for any other image.
std::optional<Digest> StoredDisk(const model::Image& image);

}  // namespace vmonce::workflows
