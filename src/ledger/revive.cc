// A new attempt of a failed operation: one guarded change, so that of any number of retries one
// makes attempt n + 1 and the others find it made.
#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "ledger/accept.h"
#include "ledger/reservation.h"
#include "ledger/rows.h"

namespace vmonce::ledger {
namespace {

bool FailedForPassingCause(const model::Item& item) {
  return item.phase == model::ItemPhase::kFailed && item.failure && item.failure->passing;
}

// Whether the VM still is as the failed attempt left it. A VM the user deleted is not.
bool MayTryAgain(const model::Operation& operation, const model::Vm& vm) {
  switch (operation.kind) {
    case model::OperationKind::kCreate:
      return vm.state == model::VmState::kFailed && !vm.delete_operation;
    case model::OperationKind::kDelete:
      return vm.state == model::VmState::kDeleting && vm.delete_operation == operation.id;
    case model::OperationKind::kStart:
    case model::OperationKind::kStop:
    case model::OperationKind::kReboot:
      return vm.state == model::VmState::kReady && !vm.delete_operation;
    case model::OperationKind::kUpdate: return false;  // Never fails: it is done or declined.
  }
  return false;
}

struct Retry {
  model::Item* item;
  model::Vm vm;
};

std::vector<Retry> FindRetries(Tx& tx, model::Operation& operation) {
  std::vector<Retry> retries;
  for (model::Item& item : operation.items) {
    if (!FailedForPassingCause(item)) continue;
    auto vm = FindVm(tx.db, model::VmId{item.subject});
    if (vm && MayTryAgain(operation, *vm)) retries.push_back({&item, std::move(*vm)});
  }
  return retries;
}

std::optional<ports::Declined> ReserveAgain(Tx& tx, const ReviveRequest& request,
                                            std::vector<Retry>& retries) {
  std::vector<std::string> names;
  model::Resources demand;
  for (const Retry& retry : retries) {
    if (retry.vm.holds_reservation) continue;
    names.push_back(retry.vm.name);
    demand = demand + Demand(retry.vm.spec);
  }
  if (names.empty()) return std::nullopt;
  const model::ProjectId project = retries.front().vm.project;
  if (auto why_not = WhyNotReserve(tx, {project, names, demand, request.quota, request.capacity})) {
    return why_not;
  }
  for (Retry& retry : retries) {
    if (!retry.vm.holds_reservation) TakeReservation(tx, retry.vm);
  }
  return std::nullopt;
}

// The cursor begins anew; when the last attempt's calls have surely ended stays known. A create has
// its VM for itself again, as the first attempt had: a delete waits for it.
void BeginAgain(Tx& tx, const model::Operation& operation, Retry& retry) {
  const model::OperationKind kind = operation.kind;
  model::Item& item = *retry.item;
  item.phase = model::ItemPhase::kForward;
  item.step = 0;
  item.failures = 0;
  item.look_first = true;
  item.failure.reset();
  model::Vm& vm = retry.vm;
  if (kind == model::OperationKind::kCreate) {
    vm.state = model::VmState::kCreating;
    vm.holder = operation.id;
  }
  if (kind == model::OperationKind::kStart || kind == model::OperationKind::kReboot) {
    vm.desired = model::Desired::kRunning;
  }
  if (kind == model::OperationKind::kStop) vm.desired = model::Desired::kStopped;
  vm.failure.reset();
  ++vm.version;
  vm.updated = tx.now;
  UpdateVm(tx.db, vm);
}

void MakeUnfinished(Tx& tx, model::Operation& operation) {
  tx.counters.Count(operation.state, -1);
  CHECK(IsLegal(operation.state, model::OperationState::kAccepted));
  operation.state = model::OperationState::kAccepted;
  tx.counters.Count(operation.state, 1);
  ++operation.attempt;
  operation.due = operation.updated = tx.now;
  operation.finished.reset();
  operation.failure.reset();
  operation.is_stuck = false;
  UpdateOperation(tx.db, operation);
  model::TimelineEntry entry;
  entry.attempt = operation.attempt;
  entry.event = "new_attempt";
  InsertTimeline(tx.db, operation.sequence, entry, tx.now);
}

}  // namespace

ports::AcceptOutcome Revive(Tx& tx, const ReviveRequest& request) {
  auto row = FindOperation(tx.db, request.operation);
  if (!row) return Fail(ErrorCode::kNotFound, "no such operation");
  model::Operation& operation = row->operation;
  const bool may_pass = operation.state == model::OperationState::kFailed && operation.failure &&
                        operation.failure->passing && operation.attempt == request.expected_attempt;
  std::vector<Retry> retries;
  if (may_pass) retries = FindRetries(tx, operation);
  if (retries.empty()) return ports::Known{std::move(operation), FindVms(tx.db, row->vms)};
  if (auto why_not = ReserveAgain(tx, request, retries)) return std::move(*why_not);
  for (Retry& retry : retries) BeginAgain(tx, operation, retry);
  MakeUnfinished(tx, operation);
  return ports::Accepted{std::move(operation), FindVms(tx.db, row->vms)};
}

}  // namespace vmonce::ledger
