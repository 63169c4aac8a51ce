#include "ledger/accept.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "ledger/forwards.h"
#include "ledger/images.h"
#include "ledger/reads.h"
#include "ledger/reservation.h"
#include "ledger/rows.h"
#include "model/restart.h"

namespace vmonce::ledger {
namespace {

using ports::Accepted;
using ports::AcceptOutcome;
using ports::Declined;
using ports::DeclineReason;
using ports::Submission;

Declined Decline(DeclineReason reason, std::string detail) {
  Declined declined;
  declined.reason = reason;
  declined.detail = std::move(detail);
  return declined;
}

std::optional<Declined> WhyBacklogFull(Tx& tx, std::int64_t most) {
  if (tx.counters.Unfinished() < most) return std::nullopt;
  return Decline(DeclineReason::kBacklogFull,
                 fmt::format("{} operations are unfinished", tx.counters.Unfinished()));
}

std::optional<Declined> WhyTooManyKeys(Tx& tx, const Submission& submission) {
  const model::Operation& operation = submission.operation;
  if (!operation.key_hash || operation.kind == model::OperationKind::kDelete) return std::nullopt;
  if (tx.counters.LiveKeys(operation.project) < submission.max_keys) return std::nullopt;
  return Decline(DeclineReason::kTooManyKeys,
                 fmt::format("{} keys of this project are remembered", submission.max_keys));
}

// What the ledger sets in a new operation that is still to be done.
OperationRow NewOperation(Tx& tx, const Submission& submission, std::vector<model::VmId> vms) {
  OperationRow row;
  row.operation = submission.operation;
  row.token = submission.token;
  row.vms = std::move(vms);
  model::Operation& operation = row.operation;
  operation.sequence = tx.counters.NextSequence();
  operation.state = model::OperationState::kAccepted;
  operation.attempt = 1;
  operation.fence = model::Fence{0};
  operation.lease_owner = std::string(model::kUnleased);
  operation.lease_until = Time{};
  operation.due = operation.accepted = operation.updated = tx.now;
  operation.finished.reset();
  operation.failure.reset();
  operation.is_stuck = false;
  if (submission.lease) {
    operation.fence = model::Fence{1};
    operation.lease_owner = submission.lease->owner.value;
    operation.lease_until = tx.now + submission.lease->ttl;
    row.accepted_by = submission.lease->owner.value;
  }
  return row;
}

Accepted Write(Tx& tx, const Submission& submission, OperationRow row, std::vector<model::Vm> vms) {
  InsertOperation(tx.db, row);
  tx.counters.Count(row.operation.state, 1);
  if (row.operation.key_hash) tx.counters.CountKeys(row.operation.project, 1);
  InsertEvents(tx.db, submission.events, tx.now);
  return Accepted{std::move(row.operation), std::move(vms)};
}

// Which host it will be is not known yet; a port that is free on none cannot be had.
std::optional<Declined> WhyNoPort(Tx& tx, const model::Vm& vm) {
  for (const model::Forward& forward : vm.spec.forwards) {
    if (forward.host_port == 0) continue;
    if (IsFreeSomewhere(tx.db, {forward.protocol, forward.host_port})) continue;
    return Decline(DeclineReason::kPortTaken,
                   fmt::format("{} port {}", ToString(forward.protocol), forward.host_port));
  }
  return std::nullopt;
}

AcceptOutcome AcceptCreate(Tx& tx, const Submission& submission, const ports::CreateVms& change) {
  if (auto full = WhyBacklogFull(tx, submission.max_backlog)) return std::move(*full);
  if (!change.vms.empty() && !IsImageThere(tx.db, change.vms.front().spec.image)) {
    return Decline(DeclineReason::kImageGone, change.vms.front().spec.image.name);
  }
  std::vector<std::string> names;
  std::vector<model::VmId> ids;
  // Summed here and not taken from the request, so that what is released later is what was
  // reserved.
  model::Resources demand;
  for (const model::Vm& vm : change.vms) {
    CHECK(vm.project == submission.operation.project && vm.operation == submission.operation.id);
    names.push_back(vm.name);
    ids.push_back(vm.id);
    if (auto no_port = WhyNoPort(tx, vm)) return std::move(*no_port);
    demand = demand + Demand(vm.spec);
  }
  if (auto why_not = WhyNotReserve(
          tx, {submission.operation.project, names, demand, change.quota, change.capacity})) {
    return std::move(*why_not);
  }
  std::vector<model::Vm> vms = change.vms;
  for (model::Vm& vm : vms) {
    vm.state = model::VmState::kPending;
    vm.version = 1;
    vm.created = vm.updated = tx.now;
    vm.holds_reservation = false;
    TakeReservation(tx, vm);
    InsertVm(tx.db, vm);
  }
  return Write(tx, submission, NewOperation(tx, submission, std::move(ids)), std::move(vms));
}

std::expected<model::Vm, Declined> FindTarget(Tx& tx, const Submission& submission,
                                              const model::VmId& id) {
  auto vm = FindVm(tx.db, id);
  if (!vm || vm->project != submission.operation.project) {
    return std::unexpected(Decline(DeclineReason::kVmNotFound, "no such VM in this project"));
  }
  return std::move(*vm);
}

std::optional<Declined> WhyStale(const model::Vm& vm, std::optional<std::int64_t> if_version) {
  if (!if_version || *if_version == vm.version) return std::nullopt;
  return Decline(DeclineReason::kStaleVersion,
                 fmt::format("the VM is at version {}, not {}", vm.version, *if_version));
}

Declined WrongState(const model::Vm& vm) {
  auto declined =
      Decline(DeclineReason::kWrongState, fmt::format("the VM is {}", ToString(vm.state)));
  declined.vm_state = vm.state;
  return declined;
}

void Touch(Tx& tx, model::Vm& vm) {
  ++vm.version;
  vm.updated = tx.now;
  UpdateVm(tx.db, vm);
}

AcceptOutcome AcceptDelete(Tx& tx, const Submission& submission, const ports::DeleteVm& change) {
  auto vm = FindTarget(tx, submission, change.vm);
  if (!vm) return std::move(vm.error());
  if (vm->state == model::VmState::kDeleting || vm->state == model::VmState::kDeleted) {
    ports::Joined joined;
    if (vm->delete_operation) {
      if (auto row = FindOperation(tx.db, *vm->delete_operation)) {
        joined.operation = std::move(row->operation);
      }
    }
    joined.vm = std::move(*vm);
    return joined;
  }
  if (auto stale = WhyStale(*vm, change.if_version)) return std::move(*stale);
  if (auto full = WhyBacklogFull(tx, submission.max_backlog)) return std::move(*full);
  CHECK(IsLegal(vm->state, model::VmState::kDeleting));
  vm->state = model::VmState::kDeleting;
  vm->delete_operation = submission.operation.id;
  vm->desired = model::Desired::kStopped;
  Touch(tx, *vm);
  return Write(tx, submission, NewOperation(tx, submission, {vm->id}), {std::move(*vm)});
}

// What a person asked for begins a new story: restarts are counted anew.
Accepted WritePower(Tx& tx, const Submission& submission, model::Desired desired, model::Vm vm) {
  vm.desired = desired;
  vm.restarts = 0;
  vm.restarted.reset();
  Touch(tx, vm);
  return Write(tx, submission, NewOperation(tx, submission, {vm.id}), {std::move(vm)});
}

AcceptOutcome AcceptPower(Tx& tx, const Submission& submission, const ports::PowerVm& change) {
  auto vm = FindTarget(tx, submission, change.vm);
  if (!vm) return std::move(vm.error());
  if (auto stale = WhyStale(*vm, change.if_version)) return std::move(*stale);
  if (vm->state != model::VmState::kReady || vm->delete_operation) return WrongState(*vm);
  if (auto full = WhyBacklogFull(tx, submission.max_backlog)) return std::move(*full);
  return WritePower(tx, submission, change.desired, std::move(*vm));
}

// An operation that was accepted and not yet done for the VM, its create excepted: what it does is
// not known here, so nothing is begun beside it.
bool IsAboutToChange(Tx& tx, const model::VmId& vm) {
  Query query = tx.db.Prepare(
      "SELECT 1 FROM operations WHERE vm_ids = ?1 AND kind <> 'create' AND finished_ms IS NULL");
  return query.Bind(vm).Next();
}

AcceptOutcome AcceptRestart(Tx& tx, const Submission& submission, const ports::RestartVm& change) {
  auto vm = FindTarget(tx, submission, change.vm);
  if (!vm) return std::move(vm.error());
  if (auto stale = WhyStale(*vm, change.if_version)) return std::move(*stale);
  const bool is_due = JudgeRestart(*vm, tx.now) == model::RestartVerdict::kDue;
  if (!is_due || vm->holder || IsAboutToChange(tx, vm->id)) return WrongState(*vm);
  if (auto full = WhyBacklogFull(tx, submission.max_backlog)) return std::move(*full);
  ++vm->restarts;
  vm->restarted = tx.now;
  Touch(tx, *vm);
  return Write(tx, submission, NewOperation(tx, submission, {vm->id}), {std::move(*vm)});
}

// An update is done when it is accepted; without a key nobody can ask for it again, and nothing is
// recorded but the change.
Accepted WriteUpdate(Tx& tx, const Submission& submission, model::Vm vm) {
  OperationRow row;
  row.operation = submission.operation;
  row.token = submission.token;
  row.vms = {vm.id};
  model::Operation& operation = row.operation;
  operation.kind = model::OperationKind::kUpdate;
  operation.state = model::OperationState::kSucceeded;
  operation.due = operation.accepted = operation.updated = tx.now;
  operation.finished = tx.now;
  operation.lease_owner = std::string(model::kUnleased);
  operation.lease_until = Time{};
  operation.sealed_secrets.clear();
  if (operation.items.empty()) operation.items.emplace_back().subject = vm.id.value;
  for (model::Item& item : operation.items) {
    item.phase = model::ItemPhase::kDone;
    item.look_first = false;
  }
  if (operation.key_hash) {
    operation.sequence = tx.counters.NextSequence();
    return Write(tx, submission, std::move(row), {std::move(vm)});
  }
  operation.sequence = 0;
  InsertEvents(tx.db, submission.events, tx.now);
  return Accepted{std::move(operation), {std::move(vm)}};
}

bool IsAsDesired(const model::Vm& vm, model::Desired desired) {
  const model::Observed wanted =
      desired == model::Desired::kRunning ? model::Observed::kRunning : model::Observed::kStopped;
  return vm.desired == desired && vm.observed == wanted;
}

AcceptOutcome AcceptUpdate(Tx& tx, const Submission& submission, const ports::UpdateVm& change) {
  auto vm = FindTarget(tx, submission, change.vm);
  if (!vm) return std::move(vm.error());
  if (auto stale = WhyStale(*vm, change.if_version)) return std::move(*stale);
  if (vm->state == model::VmState::kDeleting || vm->state == model::VmState::kDeleted) {
    return WrongState(*vm);
  }
  // Asked for again while it is being done, it is done once more: that changes nothing.
  const bool is_power = change.desired && !IsAsDesired(*vm, *change.desired);
  if (is_power && vm->state != model::VmState::kReady) return WrongState(*vm);
  if (is_power) {
    if (auto full = WhyBacklogFull(tx, submission.max_backlog)) return std::move(*full);
  }
  const bool is_renamed = change.name && *change.name != vm->name;
  // A failed VM holds no name; it asks for its name when it is revived.
  if (is_renamed && vm->holds_reservation) {
    if (const auto holder = NameHolder(tx, vm->project, *change.name)) {
      auto taken = Decline(DeclineReason::kNameTaken,
                           fmt::format("the name {} is in use in this project", *change.name));
      taken.other_vm = holder;
      return taken;
    }
  }
  const model::Vm before = *vm;
  if (change.name) vm->name = *change.name;
  if (change.labels) vm->labels = *change.labels;
  if (change.restart) vm->restart = *change.restart;
  if (is_power) return WritePower(tx, submission, *change.desired, std::move(*vm));
  const bool is_changed =
      is_renamed || vm->labels != before.labels || vm->restart != before.restart;
  if (is_changed) Touch(tx, *vm);
  return WriteUpdate(tx, submission, std::move(*vm));
}

AcceptOutcome AcceptOne(Tx& tx, const Submission& submission) {
  const model::Operation& operation = submission.operation;
  if (operation.key_hash) {
    if (auto known = FindKey(tx.db, operation.project, *operation.key_hash)) {
      return std::visit([](auto& found) { return AcceptOutcome(std::move(found)); }, *known);
    }
  }
  if (auto too_many = WhyTooManyKeys(tx, submission)) return std::move(*too_many);
  struct Visitor {
    Tx& tx;
    const Submission& submission;
    AcceptOutcome operator()(const ports::CreateVms& change) {
      return AcceptCreate(tx, submission, change);
    }
    AcceptOutcome operator()(const ports::DeleteVm& change) {
      return AcceptDelete(tx, submission, change);
    }
    AcceptOutcome operator()(const ports::PowerVm& change) {
      return AcceptPower(tx, submission, change);
    }
    AcceptOutcome operator()(const ports::RestartVm& change) {
      return AcceptRestart(tx, submission, change);
    }
    AcceptOutcome operator()(const ports::UpdateVm& change) {
      return AcceptUpdate(tx, submission, change);
    }
  };
  return std::visit(Visitor{tx, submission}, submission.change);
}

}  // namespace

std::vector<AcceptOutcome> AcceptAll(Tx& tx, std::span<const Submission> batch) {
  std::vector<AcceptOutcome> outcomes;
  outcomes.reserve(batch.size());
  for (const Submission& submission : batch) {
    outcomes.push_back(AcceptOne(tx, submission));
    if (!tx.db.ok()) break;  // The transaction is lost; nothing read from here on means anything.
  }
  return outcomes;
}

}  // namespace vmonce::ledger
