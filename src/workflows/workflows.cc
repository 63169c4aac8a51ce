#include "workflows/workflows.h"

#include "workflows/create_vm.h"
#include "workflows/delete_vm.h"
#include "workflows/power_vm.h"

namespace vmonce::workflows {

// An update is done whole when it is accepted, and has no saga.
engine::SagaTable AllSagas(const WorkflowParts& parts) {
  engine::SagaTable table;
  table.Add(CreateVmSaga(parts));
  table.Add(DeleteVmSaga(parts));
  table.Add(StartVmSaga(parts));
  table.Add(StopVmSaga(parts));
  table.Add(RebootVmSaga(parts));
  return table;
}

}  // namespace vmonce::workflows
