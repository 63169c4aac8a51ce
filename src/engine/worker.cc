#include "engine/worker.h"

#include "base/check.h"
#include "engine/run.h"

namespace vmonce::engine {

void Worker::Run(model::Operation operation, Instant asked, const std::stop_token& stop) {
  const std::shared_ptr<HeldLease> lease = parts_.leases.Keep(operation.CurrentLease(), asked);
  const Saga* saga = parts_.sagas.Find(operation.kind);
  CHECK_MSG(saga != nullptr, "an operation without a saga was leased");
  OperationRun(parts_, *saga, *lease, operation).Run(stop);
  parts_.leases.Drop(*lease);
}

Result<bool> Worker::RunOnce(Milliseconds settle) {
  const Instant asked = parts_.clock.Monotonic();
  Result<std::vector<model::Operation>> taken =
      parts_.ledger.TakeDue(parts_.replica, parts_.leases.ttl(), settle, 1);
  if (!taken) return std::unexpected(taken.error());
  if (taken->empty()) return false;
  Run(std::move(taken->front()), asked);
  return true;
}

}  // namespace vmonce::engine
