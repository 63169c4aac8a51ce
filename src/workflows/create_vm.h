// Creating a virtual machine: place → disk → seed → define → start → publish.
#pragma once

#include "workflows/parts.h"

namespace vmonce::workflows {

// The parts outlive the saga.
engine::Saga CreateVmSaga(const WorkflowParts& parts);

}  // namespace vmonce::workflows
