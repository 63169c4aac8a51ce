#include "ledger/rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ledger/forwards.h"
#include "ledger/reservation.h"
#include "ledger/rows.h"
#include "model/intent.h"

namespace vmonce::ledger {
namespace {

using Notes = std::vector<std::string>;

bool IsKeyTaken(Tx& tx, const model::Operation& operation) {
  return FindOperationByKey(tx.db, operation.project, *operation.key_hash) ||
         FindTombstone(tx.db, operation.project, *operation.key_hash);
}

bool IsSequenceTaken(Tx& tx, std::int64_t sequence) {
  if (sequence <= 0) return true;
  Query query = tx.db.Prepare("SELECT 1 FROM operations WHERE sequence = ?1");
  return query.Bind(sequence).Next();
}

// Above every row's: what is written later with a number of its own may be above the counter.
std::int64_t NewSequence(Tx& tx) {
  {
    Query query = tx.db.Prepare("SELECT coalesce(max(sequence), 0) FROM operations");
    if (query.Next()) tx.counters.RaiseSequence(query.Int());
  }
  return tx.counters.NextSequence();
}

void ReleaseAll(Tx& tx, model::Vm before) {
  ReleaseReservation(tx, before);
  ReleasePorts(tx, before);
}

void ReservePortsOf(Tx& tx, model::Vm& vm, Notes& notes) {
  for (const model::Forward& forward : vm.forwards) {
    const auto taken = HostsUsingPort(tx.db, {forward.protocol, forward.host_port});
    if (std::ranges::find(taken, *vm.host) == taken.end()) continue;
    notes.push_back(fmt::format("{} port {} of host {} is another VM's: {} is known without it",
                                ToString(forward.protocol), forward.host_port, vm.host->value,
                                vm.name));
    vm.forwards.clear();
    return;
  }
  for (const model::Forward& forward : vm.forwards) {
    tx.db.Run("INSERT INTO forwards (host, protocol, host_port, vm) VALUES (?1, ?2, ?3, ?4)",
              *vm.host, ToString(forward.protocol), forward.host_port, vm.id);
  }
}

void TakeAll(Tx& tx, model::Vm& vm, Notes& notes) {
  if (!vm.holds_reservation) return;
  const auto holder = NameHolder(tx, vm.project, vm.name);
  if (holder && *holder != vm.id) {
    const std::string name = model::GeneratedName(vm.id);
    notes.push_back(fmt::format("another VM has the name {}: the machine {} is called {} now",
                                vm.name, ToString(vm.id), name));
    vm.name = name;
  }
  vm.holds_reservation = false;
  TakeReservation(tx, vm);
  if (vm.host) ReservePortsOf(tx, vm, notes);
}

void RewriteVm(Tx& tx, model::Vm vm, Notes& notes) {
  const auto before = FindVm(tx.db, vm.id);
  if (before) ReleaseAll(tx, *before);
  TakeAll(tx, vm, notes);
  vm.version = before ? before->version + 1 : 1;
  vm.updated = tx.now;
  before ? UpdateVm(tx.db, vm) : InsertVm(tx.db, vm);
}

void InsertRebuilt(Tx& tx, const ports::RebuiltOperation& rebuilt, OperationRow& row,
                   Notes& notes) {
  model::Operation& operation = row.operation;
  for (const model::Vm& vm : rebuilt.vms) row.vms.push_back(vm.id);
  if (operation.key_hash && IsKeyTaken(tx, operation)) {
    operation.key_hash.reset();
    notes.push_back(
        fmt::format("the key of operation {} has another record: it is known without "
                    "its key",
                    ToString(operation.id)));
  }
  if (IsSequenceTaken(tx, operation.sequence)) {
    operation.sequence = NewSequence(tx);
    notes.push_back(fmt::format("operation {} has the accept number {} now", ToString(operation.id),
                                operation.sequence));
  }
  InsertOperation(tx.db, row);
  tx.counters.Count(operation.state, 1);
  if (operation.key_hash) tx.counters.CountKeys(operation.project, 1);
}

}  // namespace

std::vector<model::Operation> Unfinished(Db& db) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM operations WHERE finished_ms IS NULL ORDER BY sequence", kOperationColumns);
  std::vector<model::Operation> operations;
  Query query = db.Prepare(sql);
  while (query.Next()) operations.push_back(ReadOperation(db, query).operation);
  return operations;
}

std::vector<std::string> Rewrite(Tx& tx, const ports::RebuiltOperation& rebuilt) {
  Notes notes;
  const auto before = FindOperation(tx.db, rebuilt.operation.id);
  OperationRow row;
  row.operation = rebuilt.operation;
  row.operation.updated = tx.now;
  if (before) {
    row.operation.sequence = before->operation.sequence;
    UpdateOperation(tx.db, row.operation);
    tx.counters.Move(before->operation.state, row.operation.state);
  } else {
    InsertRebuilt(tx, rebuilt, row, notes);
  }
  for (const model::Vm& vm : rebuilt.vms) RewriteVm(tx, vm, notes);
  model::TimelineEntry line;
  line.attempt = row.operation.attempt;
  line.event = "rebuilt";
  line.detail = rebuilt.detail;
  InsertTimeline(tx.db, row.operation.sequence, line, tx.now);
  return notes;
}

bool SetUnread(Tx& tx, const model::HostId& host, bool is_unread) {
  tx.db.Run("UPDATE hosts SET is_unread = ?2 WHERE id = ?1", host, is_unread);
  return tx.db.Changes() > 0;
}

}  // namespace vmonce::ledger
