// Deleting a virtual machine: hold → stop → undefine → seed → disk → verify → publish. Never gives
// up; what it removes carries our label or our name.
#pragma once

#include "workflows/parts.h"

namespace vmonce::workflows {

// The parts outlive the saga.
engine::Saga DeleteVmSaga(const WorkflowParts& parts);

}  // namespace vmonce::workflows
