// Starting, stopping and rebooting a virtual machine: hold → the effect → publish.
#pragma once

#include "workflows/parts.h"

namespace vmonce::workflows {

// What a stop asks for, as its operation's intent: {"force":true} powers off at once.
struct StopIntent {
  bool force = false;
};
std::string Serialise(const StopIntent& intent);
StopIntent ParseStopIntent(std::string_view intent);

// The parts outlive the sagas.
engine::Saga StartVmSaga(const WorkflowParts& parts);
engine::Saga StopVmSaga(const WorkflowParts& parts);
engine::Saga RebootVmSaga(const WorkflowParts& parts);

}  // namespace vmonce::workflows
