#include "model/retention.h"

#include <algorithm>

#include "base/check.h"

namespace vmonce::model {

std::optional<Time> LastGone(const Operation& operation, std::span<const Vm> vms) {
  Time last = operation.finished.value_or(operation.updated);
  for (const Vm& vm : vms) {
    if (vm.state == VmState::kDeleted && vm.deleted) {
      last = std::max(last, *vm.deleted);
    } else if (vm.state == VmState::kFailed && !vm.holds_reservation) {
      last = std::max(last, vm.updated);
    } else {
      return std::nullopt;
    }
  }
  return last;
}

std::optional<Time> RecordExpiry(const Operation& operation, std::optional<Time> last_gone,
                                 const RetentionPolicy& policy) {
  if (!IsFinished(operation.state)) return std::nullopt;
  CHECK_MSG(operation.finished.has_value(), "an operation has ended at no time");
  const Time finished = *operation.finished;
  switch (operation.kind) {
    case OperationKind::kCreate:
      if (!last_gone) return std::nullopt;
      // A create that was cancelled ends after its VM.
      return std::max(*last_gone, finished) + policy.retention;
    case OperationKind::kDelete:
      return std::max(last_gone.value_or(finished), finished) + policy.retention;
    case OperationKind::kStart:
    case OperationKind::kStop:
    case OperationKind::kReboot:
    case OperationKind::kUpdate: return finished + policy.key_ttl;
  }
  CHECK_MSG(false, "not an operation kind");
}

}  // namespace vmonce::model
