#include "ledger/counters.h"

namespace vmonce::ledger {

std::int64_t Counters::NextSequence() {
  is_changed_ = true;
  ++changes_;
  return ++Load().last_sequence;
}

void Counters::RaiseSequence(std::int64_t newest) {
  Totals& totals = Load();
  if (totals.last_sequence >= newest) return;
  totals.last_sequence = newest;
  is_changed_ = true;
  ++changes_;
}

void Counters::Reserve(const model::ProjectId& project, const model::Resources& demand) {
  Usage& usage = Row(project);
  usage.used = usage.used + demand;
  usage.is_changed = true;
  Load().used = Load().used + demand;
  is_changed_ = true;
  ++changes_;
}

void Counters::Release(const model::ProjectId& project, const model::Resources& demand) {
  Reserve(project, model::Resources{} - demand);
}

void Counters::Count(model::OperationState state, int by) {
  Totals& totals = Load();
  is_changed_ = true;
  ++changes_;
  switch (state) {
    case model::OperationState::kAccepted:
    case model::OperationState::kRunning:
    case model::OperationState::kVerifying: totals.unfinished += by; return;
    case model::OperationState::kSucceeded: totals.succeeded += by; return;
    case model::OperationState::kFailed: totals.failed += by; return;
    case model::OperationState::kCancelled: totals.cancelled += by; return;
  }
}

void Counters::Move(model::OperationState from, model::OperationState to) {
  // Most records go on with an unfinished operation, and no row is read or written for them.
  if (!IsFinished(from) && !IsFinished(to)) return;
  Count(from, -1);
  Count(to, 1);
}

void Counters::CountKeys(const model::ProjectId& project, int by) {
  Usage& usage = Row(project);
  usage.live_keys += by;
  usage.is_changed = true;
  ++changes_;
}

void Counters::Write() {
  for (const auto& [project, usage] : projects_) {
    if (!usage.is_changed) continue;
    // A row below zero breaks a CHECK of the schema: the transaction fails, the books stay right.
    db_.Run(
        "INSERT INTO usage (project, vms, cpus, memory_mib, disk_gib, live_keys) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
        "ON CONFLICT (project) DO UPDATE SET vms = excluded.vms, cpus = excluded.cpus, "
        "memory_mib = excluded.memory_mib, disk_gib = excluded.disk_gib, "
        "live_keys = excluded.live_keys",
        project, usage.used, usage.live_keys);
  }
  if (!is_changed_) return;
  db_.Run(
      "UPDATE totals SET vms = ?1, cpus = ?2, memory_mib = ?3, disk_gib = ?4, unfinished = ?5, "
      "succeeded = ?6, failed = ?7, cancelled = ?8, last_sequence = ?9",
      totals_.used, totals_.unfinished, totals_.succeeded, totals_.failed, totals_.cancelled,
      totals_.last_sequence);
}

Counters::Usage& Counters::Row(const model::ProjectId& project) {
  const auto [row, is_new] = projects_.try_emplace(project);
  if (is_new) {
    Query query = db_.Prepare(
        "SELECT vms, cpus, memory_mib, disk_gib, live_keys FROM usage WHERE project = ?1");
    if (query.Bind(project).Next()) {
      row->second.used = query.Amounts();
      row->second.live_keys = query.Int();
    }
  }
  return row->second;
}

Counters::Totals& Counters::Load() {
  if (is_loaded_) return totals_;
  is_loaded_ = true;
  Query query = db_.Prepare(
      "SELECT vms, cpus, memory_mib, disk_gib, unfinished, succeeded, failed, cancelled, "
      "last_sequence FROM totals");
  if (query.Next()) {
    totals_.used = query.Amounts();
    totals_.unfinished = query.Int();
    totals_.succeeded = query.Int();
    totals_.failed = query.Int();
    totals_.cancelled = query.Int();
    totals_.last_sequence = query.Int();
  }
  return totals_;
}

}  // namespace vmonce::ledger
