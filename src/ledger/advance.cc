#include "ledger/advance.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "ledger/forwards.h"
#include "ledger/reservation.h"
#include "ledger/rows.h"
#include "model/limits.h"

namespace vmonce::ledger {
namespace {

using ports::Advance;
using ports::AdvanceOutcome;
using ports::VmChange;

// Whoever did not give its lease back may have left a call out, and so has a process that said so
// and has ended since: it may still take effect. When that process died is not known; not after
// now.
void Distrust(Tx& tx, const TakeRequest& request, model::Operation& operation) {
  const bool is_taken_over = operation.lease_owner != model::kUnleased;
  for (model::Item& item : operation.items) {
    const bool is_left_out = !item.call_left_by.empty() && item.call_left_by != request.owner.value;
    if (IsEnded(item.phase) || !(is_taken_over || is_left_out)) continue;
    item.look_first = true;
    item.unsettled_until = std::max(item.unsettled_until, tx.now + request.settle);
    item.call_left_by.clear();
  }
}

// Whatever operation ends a VM has to know it, and finds it in the VM's row.
void KeepUnsettled(Tx& tx, std::span<const model::Item> items) {
  for (const model::Item& item : items) {
    if (item.unsettled_until <= tx.now) continue;
    const auto before = FindVm(tx.db, model::VmId{item.subject});
    if (!before || before->unsettled_until >= item.unsettled_until) continue;
    model::Vm vm = *before;
    vm.unsettled_until = item.unsettled_until;
    UpdateVm(tx.db, vm);
  }
}

void TakeOne(Tx& tx, const TakeRequest& request, model::Operation& operation) {
  model::TimelineEntry line;
  line.replica = request.owner.value;
  line.attempt = operation.attempt;
  line.event = "leased";
  // A lease after a wait of its own is told by what is done under it; a poll every moment would
  // drown the story.
  bool is_told = operation.state == model::OperationState::kAccepted;
  Distrust(tx, request, operation);
  KeepUnsettled(tx, operation.items);
  if (operation.lease_owner != model::kUnleased) {
    line.event = "taken_over";
    is_told = true;
    line.detail = fmt::format("the lease of {} ran out; ", operation.lease_owner);
  }
  ++operation.fence.value;
  line.detail += fmt::format("fence {}", operation.fence.value);
  operation.lease_owner = request.owner.value;
  operation.lease_until = tx.now + request.ttl;
  operation.updated = tx.now;
  UpdateLease(tx.db, operation);
  if (is_told) InsertTimeline(tx.db, operation.sequence, line, tx.now);
}

// kMarked: the change would be illegal, and another operation's mark is why.
AdvanceOutcome SetState(Tx& tx, const model::OperationId& by, model::VmState to, model::Vm& vm) {
  if (!IsLegal(vm.state, to)) {
    const bool is_marked = vm.delete_operation && *vm.delete_operation != by;
    CHECK_MSG(is_marked || !tx.db.ok(), fmt::format("VM {} from {} to {}", ToString(vm.id),
                                                    ToString(vm.state), ToString(to)));
    return AdvanceOutcome::kMarked;
  }
  if (to == model::VmState::kDeleted && vm.state != to) vm.deleted = tx.now;
  vm.state = to;
  return AdvanceOutcome::kRecorded;
}

AdvanceOutcome Apply(Tx& tx, const model::OperationId& by, const VmChange& change, model::Vm& vm) {
  if (change.take_hold) {
    if (vm.holder && *vm.holder != by) return AdvanceOutcome::kHeld;
    vm.holder = by;
  }
  if (change.state) {
    const AdvanceOutcome outcome = SetState(tx, by, *change.state, vm);
    if (outcome != AdvanceOutcome::kRecorded) return outcome;
  }
  if (change.release_host) LeaveHost(tx, vm);
  if (change.place_on && !PlaceOn(tx, vm, *change.place_on)) return AdvanceOutcome::kNoRoom;
  if (change.reserve_ports && !ReservePorts(tx, vm, *change.reserve_ports)) {
    return AdvanceOutcome::kPortTaken;
  }
  if (change.release_reservation) ReleaseReservation(tx, vm);
  if (change.desired) vm.desired = *change.desired;
  if (change.observed) {
    vm.observed = *change.observed;
    vm.stopped_by = change.stopped_by;
  }
  if (change.clear_failure) vm.failure.reset();
  if (change.failure) vm.failure = change.failure;
  if (change.release_hold && vm.holder == by) vm.holder.reset();
  return AdvanceOutcome::kRecorded;
}

bool LooksTheSame(const model::Vm& a, const model::Vm& b) {
  return a.state == b.state && a.desired == b.desired && a.observed == b.observed &&
         a.stopped_by == b.stopped_by && a.host == b.host && a.forwards == b.forwards &&
         a.failure == b.failure && a.holds_reservation == b.holds_reservation;
}

AdvanceOutcome ApplyAll(Tx& tx, const Advance& advance) {
  for (const VmChange& change : advance.changes) {
    auto before = FindVm(tx.db, change.vm);
    if (!before) {
      tx.db.Fail(ErrorCode::kInternal,
                 fmt::format("the row of VM {} is gone", ToString(change.vm)));
      return AdvanceOutcome::kRecorded;
    }
    model::Vm vm = *before;
    const AdvanceOutcome outcome = Apply(tx, advance.lease.operation, change, vm);
    if (outcome != AdvanceOutcome::kRecorded) return outcome;
    if (!LooksTheSame(*before, vm)) {
      ++vm.version;
      vm.updated = tx.now;
    } else if (before->holder == vm.holder) {
      continue;
    }
    UpdateVm(tx.db, *before, vm);
  }
  return AdvanceOutcome::kRecorded;
}

bool IsMarked(Tx& tx, const Uuid& subject) {
  const auto vm = FindVm(tx.db, model::VmId{subject});  // At hand, mostly.
  return vm && vm->delete_operation.has_value();
}

void ReleaseHolds(Tx& tx, const HeldOperation& row, const model::OperationId& id) {
  for (const model::VmId& vm : row.vms) {
    const auto before = FindVm(tx.db, vm);
    if (!before || before->holder != id) continue;
    model::Vm after = *before;
    after.holder.reset();
    UpdateVm(tx.db, *before, after);
  }
}

void WriteOperation(Tx& tx, const Advance& advance, const HeldOperation& row) {
  CHECK_MSG(IsLegal(row.state, advance.state),
            fmt::format("operation {} from {} to {}", ToString(advance.lease.operation),
                        ToString(row.state), ToString(advance.state)));
  tx.counters.Move(row.state, advance.state);
  OperationProgress progress{row.sequence,     advance.state,        advance.items, advance.failure,
                             advance.is_stuck, advance.drop_secrets, tx.now,        std::nullopt};
  if (IsFinished(advance.state)) {
    progress.due = tx.now;
    ReleaseHolds(tx, row, advance.lease.operation);
  } else if (advance.release_due_in) {
    progress.due = tx.now + *advance.release_due_in;
  }
  UpdateProgress(tx.db, progress);
}

bool IsHeldBy(const HeldOperation& operation, const model::Lease& lease) {
  return !operation.is_finished && operation.lease_owner == lease.owner.value &&
         operation.fence == lease.fence && operation.lease_owner != model::kUnleased;
}

}  // namespace

std::vector<model::Operation> TakeDue(Tx& tx, const TakeRequest& request) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM operations WHERE finished_ms IS NULL "
      "AND max(due_ms, lease_until_ms) <= ?1 "
      "AND (lease_owner = 'unleased' OR lease_owner GLOB 'r-*') "
      "ORDER BY max(due_ms, lease_until_ms) LIMIT ?2",
      kOperationColumns);
  std::vector<model::Operation> taken;
  {
    Query query = tx.db.Prepare(sql);
    query.Bind(tx.now, request.most);
    while (query.Next()) taken.push_back(ReadOperation(tx.db, query).operation);
  }
  for (model::Operation& operation : taken) TakeOne(tx, request, operation);
  return taken;
}

std::vector<model::OperationId> Renew(Tx& tx, std::span<const model::Lease> leases,
                                      Milliseconds ttl) {
  std::vector<model::OperationId> lost;
  for (const model::Lease& lease : leases) {
    tx.db.Run(
        "UPDATE operations SET lease_until_ms = ?4 WHERE id = ?1 AND lease_owner = ?2 "
        "AND fence = ?3 AND finished_ms IS NULL",
        lease.operation, lease.owner, lease.fence.value, tx.now + ttl);
    if (tx.db.Changes() == 0) lost.push_back(lease.operation);
  }
  return lost;
}

AdvanceOutcome Record(Tx& tx, const Advance& advance) {
  // Read and compared here, written below: nobody else writes during the transaction.
  const auto row = FindHeldOperation(tx.db, advance.lease.operation);
  if (!row || !IsHeldBy(*row, advance.lease)) return AdvanceOutcome::kLost;
  if (!tx.db.ok()) return AdvanceOutcome::kLost;  // A row that cannot be read decides nothing.
  if (advance.unless_marked && IsMarked(tx, *advance.unless_marked)) {
    return AdvanceOutcome::kMarked;
  }
  const AdvanceOutcome outcome = ApplyAll(tx, advance);
  if (outcome != AdvanceOutcome::kRecorded || !tx.db.ok()) return outcome;
  KeepUnsettled(tx, advance.items);
  WriteOperation(tx, advance, *row);
  InsertTimeline(tx.db, row->sequence, advance.timeline, tx.now);
  InsertEvents(tx.db, advance.events, tx.now);
  return AdvanceOutcome::kRecorded;
}

void MakeDue(Tx& tx, const model::OperationId& operation) {
  tx.db.Run(
      "UPDATE operations SET due_ms = ?2 WHERE id = ?1 AND finished_ms IS NULL "
      "AND lease_owner = 'unleased' AND due_ms > ?2",
      operation, tx.now);
}

void AppendTimeline(Tx& tx, std::span<const model::TimelineEntry> entries) {
  for (const model::TimelineEntry& entry : entries) {
    Query query = tx.db.Prepare(
        "SELECT sequence, (SELECT coalesce(max(number), 0) FROM timeline "
        "WHERE operation = operations.sequence) FROM operations WHERE id = ?1");
    if (!query.Bind(entry.operation).Next()) continue;
    const std::int64_t sequence = query.Int();
    const std::int64_t last = query.Int();
    if (last >= model::limits::kTimelineLines) continue;
    InsertTimeline(tx.db, {sequence, last}, std::span(&entry, 1), tx.now);
  }
}

}  // namespace vmonce::ledger
