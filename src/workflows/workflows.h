// Registers the product's stories with the engine.
#pragma once

#include "engine/saga.h"
#include "workflows/parts.h"

namespace vmonce::workflows {

// The parts outlive the table.
engine::SagaTable AllSagas(const WorkflowParts& parts);

}  // namespace vmonce::workflows
