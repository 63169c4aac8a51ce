#include "ledger/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ledger/hot_vms.h"
#include "ledger/row_json.h"

namespace vmonce::ledger {

const std::string_view kOperationColumns =
    "sequence, id, project, kind, state, key_hash, key_prefix, fingerprint, fingerprint_version, "
    "canonical_request, intent, face, sealed_secrets, accepted_by, attempt, fence, lease_owner, "
    "lease_until_ms, due_ms, is_stuck, vm_ids, items, failure, accepted_ms, updated_ms, "
    "finished_ms, token";

const std::string_view kVmColumns =
    "id, project, name, operation, item_index, key_prefix, spec, mac, labels, state, desired, "
    "observed, host, version, holder, delete_operation, holds_reservation, failure, created_ms, "
    "updated_ms, deleted_ms, stopped_by, restart, restarts, restarted_ms, "
    "forwards, addresses, unsettled_until_ms";

namespace {

// What was read, or its default with an error stuck to the connection: a row that this program
// would not have written.
template <typename T>
T Expect(Db& db, std::string_view column, std::optional<T> value) {
  if (value) return std::move(*value);
  db.Fail(ErrorCode::kInternal, fmt::format("a row's {} cannot be read", column));
  return T{};
}

std::optional<model::Failure> ReadFailure(Db& db, Query& query) {
  if (!query.IsNull()) return Expect(db, "failure", FailureFromJson(query.Text()));
  query.Skip();
  return std::nullopt;
}

template <typename StrongId>
std::optional<StrongId> MaybeStrongId(Query& query) {
  const auto id = query.MaybeId();
  if (!id) return std::nullopt;
  return StrongId{*id};
}

std::optional<std::string> Json(const std::optional<model::Failure>& failure) {
  if (!failure) return std::nullopt;
  return FailureToJson(*failure);
}

// Most VMs have none.
std::optional<std::string> ForwardsColumn(const model::Vm& vm) {
  if (vm.forwards.empty() && vm.forward_moves == 0) return std::nullopt;
  return ForwardsToJson(vm.forwards, vm.forward_moves);
}

std::optional<std::string> AddressesColumn(const model::Vm& vm) {
  if (vm.addresses.empty()) return std::nullopt;
  return AddressesToJson(vm.addresses);
}

void ReadForwards(Db& db, Query& query, model::Vm& vm) {
  if (query.IsNull()) {
    query.Skip();
    return;
  }
  ReservedForwards reserved = Expect(db, "forwards", ForwardsFromJson(query.Text()));
  vm.forwards = std::move(reserved.forwards);
  vm.forward_moves = reserved.moves;
}

void ReadAddresses(Db& db, Query& query, model::Vm& vm) {
  if (query.IsNull()) {
    query.Skip();
    return;
  }
  vm.addresses = Expect(db, "addresses", AddressesFromJson(query.Text()));
}

std::optional<std::string> NullWhenEmpty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<std::span<const std::uint8_t>> BlobOrNull(const std::string& bytes) {
  if (bytes.empty()) return std::nullopt;
  return std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

std::span<const std::uint8_t> AsBlob(const std::string& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

void TellWritten(Db& db, const model::Vm& vm) {
  if (db.ok() && db.hot_vms() != nullptr) db.hot_vms()->Wrote(vm);
}

}  // namespace

std::optional<OperationRow> FindOperation(Db& db, const model::OperationId& id) {
  static const std::string sql =
      fmt::format("SELECT {} FROM operations WHERE id = ?1", kOperationColumns);
  Query query = db.Prepare(sql);
  if (!query.Bind(id).Next()) return std::nullopt;
  return ReadOperation(db, query);
}

std::optional<OperationRow> FindOperationByKey(Db& db, const model::ProjectId& project,
                                               const Digest& key_hash) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM operations WHERE project = ?1 AND key_hash = ?2", kOperationColumns);
  Query query = db.Prepare(sql);
  if (!query.Bind(project, key_hash).Next()) return std::nullopt;
  return ReadOperation(db, query);
}

OperationRow ReadOperation(Db& db, Query& query) {
  OperationRow row;
  model::Operation& operation = row.operation;
  operation.sequence = query.Int();
  operation.id = model::OperationId{query.Id()};
  operation.project.value = query.Text();
  operation.kind = Expect(db, "kind", model::ParseOperationKind(query.Text()));
  operation.state = Expect(db, "state", model::ParseOperationState(query.Text()));
  if (query.IsNull()) {
    query.Skip();
  } else {
    operation.key_hash = query.Hash();
  }
  operation.key_prefix = query.Text();
  operation.fingerprint = query.Hash();
  operation.fingerprint_version = query.SmallInt();
  operation.canonical_request = query.Text();
  operation.intent = query.Text();
  operation.face = query.Text();
  operation.sealed_secrets = query.Blob();
  row.accepted_by = query.Text();
  operation.attempt = query.SmallInt();
  operation.fence.value = query.Int();
  operation.lease_owner = query.Text();
  operation.lease_until = query.At();
  operation.due = query.At();
  operation.is_stuck = query.Bool();
  row.vms = SplitIds(query.Blob());
  operation.items = Expect(db, "items", ItemsFromJson(query.Text()));
  operation.failure = ReadFailure(db, query);
  operation.accepted = query.At();
  operation.updated = query.At();
  operation.finished = query.MaybeAt();
  row.token = MaybeStrongId<model::TokenId>(query);
  return row;
}

void InsertOperation(Db& db, const OperationRow& row) {
  static const std::string sql = fmt::format(
      "INSERT INTO operations ({}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, "
      "?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)",
      kOperationColumns);
  const model::Operation& operation = row.operation;
  const std::string vms = JoinIds(row.vms);
  db.Run(sql, operation.sequence, operation.id, operation.project, ToString(operation.kind),
         ToString(operation.state), operation.key_hash, operation.key_prefix, operation.fingerprint,
         operation.fingerprint_version, operation.canonical_request, operation.intent,
         operation.face, BlobOrNull(operation.sealed_secrets), NullWhenEmpty(row.accepted_by),
         operation.attempt, operation.fence.value, operation.lease_owner, operation.lease_until,
         operation.due, operation.is_stuck, AsBlob(vms), ItemsToJson(operation.items),
         Json(operation.failure), operation.accepted, operation.updated, operation.finished,
         row.token);
}

void UpdateOperation(Db& db, const model::Operation& operation) {
  db.Run(
      "UPDATE operations SET state = ?2, sealed_secrets = ?3, attempt = ?4, fence = ?5, "
      "lease_owner = ?6, lease_until_ms = ?7, due_ms = ?8, is_stuck = ?9, items = ?10, "
      "failure = ?11, updated_ms = ?12, finished_ms = ?13 WHERE sequence = ?1",
      operation.sequence, ToString(operation.state), BlobOrNull(operation.sealed_secrets),
      operation.attempt, operation.fence.value, operation.lease_owner, operation.lease_until,
      operation.due, operation.is_stuck, ItemsToJson(operation.items), Json(operation.failure),
      operation.updated, operation.finished);
}

std::optional<HeldOperation> FindHeldOperation(Db& db, const model::OperationId& id) {
  Query query = db.Prepare(
      "SELECT sequence, state, lease_owner, fence, finished_ms, vm_ids FROM operations "
      "WHERE id = ?1");
  if (!query.Bind(id).Next()) return std::nullopt;
  HeldOperation held;
  held.sequence = query.Int();
  held.state = Expect(db, "state", model::ParseOperationState(query.Text()));
  held.lease_owner = query.Text();
  held.fence.value = query.Int();
  held.is_finished = query.MaybeAt().has_value();
  held.vms = SplitIds(query.Blob());
  return held;
}

void UpdateLease(Db& db, const model::Operation& operation) {
  db.Run(
      "UPDATE operations SET fence = ?2, lease_owner = ?3, lease_until_ms = ?4, items = ?5, "
      "updated_ms = ?6 WHERE sequence = ?1",
      operation.sequence, operation.fence.value, operation.lease_owner, operation.lease_until,
      ItemsToJson(operation.items), operation.updated);
}

void UpdateProgress(Db& db, const OperationProgress& progress) {
  if (!progress.due) {
    db.Run(
        "UPDATE operations SET state = ?2, items = ?3, failure = ?4, is_stuck = ?5, "
        "updated_ms = ?6 WHERE sequence = ?1",
        progress.sequence, ToString(progress.state), ItemsToJson(progress.items),
        Json(progress.failure), progress.is_stuck, progress.now);
  } else {
    db.Run(
        "UPDATE operations SET state = ?2, items = ?3, failure = ?4, is_stuck = ?5, "
        "updated_ms = ?6, due_ms = ?7, finished_ms = ?8, lease_owner = ?9, lease_until_ms = 0 "
        "WHERE sequence = ?1",
        progress.sequence, ToString(progress.state), ItemsToJson(progress.items),
        Json(progress.failure), progress.is_stuck, progress.now, *progress.due,
        IsFinished(progress.state) ? std::optional(progress.now) : std::nullopt, model::kUnleased);
  }
  if (progress.drop_secrets) {
    db.Run(
        "UPDATE operations SET sealed_secrets = NULL "
        "WHERE sequence = ?1 AND sealed_secrets IS NOT NULL",
        progress.sequence);
  }
}

std::optional<model::Vm> FindVm(Db& db, const model::VmId& id) {
  if (HotVms* hot = db.hot_vms()) {
    if (auto vm = hot->FindInTransaction(id)) return vm;
  }
  static const std::string sql = fmt::format("SELECT {} FROM vms WHERE id = ?1", kVmColumns);
  Query query = db.Prepare(sql);
  if (!query.Bind(id).Next()) return std::nullopt;
  return ReadVm(db, query);
}

std::vector<model::Vm> FindVms(Db& db, std::span<const model::VmId> ids) {
  std::vector<model::Vm> vms;
  for (const model::VmId& id : ids) {
    if (auto vm = FindVm(db, id)) vms.push_back(std::move(*vm));
  }
  return vms;
}

model::Vm ReadVm(Db& db, Query& query) {
  model::Vm vm;
  vm.id = model::VmId{query.Id()};
  vm.project.value = query.Text();
  vm.name = query.Text();
  vm.operation = model::OperationId{query.Id()};
  vm.index = query.SmallInt();
  vm.key_prefix = query.Text();
  vm.spec = Expect(db, "spec", SpecFromJson(query.Text()));
  vm.mac = query.Text();
  vm.labels = Expect(db, "labels", LabelsFromJson(query.Text()));
  vm.state = Expect(db, "state", model::ParseVmState(query.Text()));
  vm.desired = Expect(db, "desired", model::ParseDesired(query.Text()));
  vm.observed = Expect(db, "observed", model::ParseObserved(query.Text()));
  if (query.IsNull()) {
    query.Skip();
  } else {
    vm.host = model::HostId{query.Text()};
  }
  vm.version = query.Int();
  vm.holder = MaybeStrongId<model::OperationId>(query);
  vm.delete_operation = MaybeStrongId<model::OperationId>(query);
  vm.holds_reservation = query.Bool();
  vm.failure = ReadFailure(db, query);
  vm.created = query.At();
  vm.updated = query.At();
  vm.deleted = query.MaybeAt();
  vm.stopped_by = Expect(db, "stopped_by", model::ParseStopCause(query.Text()));
  vm.restart = Expect(db, "restart", model::ParseRestartPolicy(query.Text()));
  vm.restarts = query.SmallInt();
  vm.restarted = query.MaybeAt();
  ReadForwards(db, query, vm);
  ReadAddresses(db, query, vm);
  vm.unsettled_until = query.At();
  return vm;
}

void InsertVm(Db& db, const model::Vm& vm) {
  static const std::string sql = fmt::format(
      "INSERT INTO vms ({}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
      "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)",
      kVmColumns);
  db.RunTold(sql, vm.id, vm.project, vm.name, vm.operation, vm.index, vm.key_prefix,
             SpecToJson(vm.spec), vm.mac, LabelsToJson(vm.labels), ToString(vm.state),
             ToString(vm.desired), ToString(vm.observed), vm.host, vm.version, vm.holder,
             vm.delete_operation, vm.holds_reservation, Json(vm.failure), vm.created, vm.updated,
             vm.deleted, ToString(vm.stopped_by), ToString(vm.restart), vm.restarts, vm.restarted,
             ForwardsColumn(vm), AddressesColumn(vm), vm.unsettled_until);
  TellWritten(db, vm);
}

void UpdateVm(Db& db, const model::Vm& vm) {
  db.RunTold(
      "UPDATE vms SET name = ?2, labels = ?3, state = ?4, desired = ?5, observed = ?6, host = ?7, "
      "version = ?8, holder = ?9, delete_operation = ?10, holds_reservation = ?11, failure = ?12, "
      "updated_ms = ?13, deleted_ms = ?14, stopped_by = ?15, restart = ?16, restarts = ?17, "
      "restarted_ms = ?18, forwards = ?19, addresses = ?20, unsettled_until_ms = ?21 WHERE id = ?1",
      vm.id, vm.name, LabelsToJson(vm.labels), ToString(vm.state), ToString(vm.desired),
      ToString(vm.observed), vm.host, vm.version, vm.holder, vm.delete_operation,
      vm.holds_reservation, Json(vm.failure), vm.updated, vm.deleted, ToString(vm.stopped_by),
      ToString(vm.restart), vm.restarts, vm.restarted, ForwardsColumn(vm), AddressesColumn(vm),
      vm.unsettled_until);
  TellWritten(db, vm);
}

void UpdateVm(Db& db, const model::Vm& before, const model::Vm& vm) {
  // SQLite writes every index anew that has a column which is set, changed or not. The short
  // statements set those that no index has, and the host, which one has; whatever else may differ
  // takes the long one.
  const bool is_moved = vm.host != before.host;
  model::Vm rest = vm;
  rest.host = before.host;
  rest.state = before.state;
  rest.desired = before.desired;
  rest.observed = before.observed;
  rest.version = before.version;
  rest.holder = before.holder;
  rest.failure = before.failure;
  rest.updated = before.updated;
  if (rest != before) {
    UpdateVm(db, vm);
    return;
  }
  const auto write = [&](std::string_view sql, const auto&... more) {
    db.RunTold(sql, vm.id, ToString(vm.state), ToString(vm.desired), ToString(vm.observed),
               vm.version, vm.holder, Json(vm.failure), vm.updated, more...);
  };
  if (is_moved) {
    write(
        "UPDATE vms SET state = ?2, desired = ?3, observed = ?4, version = ?5, holder = ?6, "
        "failure = ?7, updated_ms = ?8, host = ?9 WHERE id = ?1",
        vm.host);
  } else {
    write(
        "UPDATE vms SET state = ?2, desired = ?3, observed = ?4, version = ?5, holder = ?6, "
        "failure = ?7, updated_ms = ?8 WHERE id = ?1");
  }
  TellWritten(db, vm);
}

std::optional<model::Tombstone> FindTombstone(Db& db, const model::ProjectId& project,
                                              const Digest& key_hash) {
  Query query = db.Prepare(
      "SELECT fingerprint, vm_ids, final_state, first_seen_ms, expires_ms FROM tombstones "
      "WHERE project = ?1 AND key_hash = ?2");
  if (!query.Bind(project, key_hash).Next()) return std::nullopt;
  model::Tombstone tombstone;
  tombstone.project = project;
  tombstone.key_hash = key_hash;
  tombstone.fingerprint = query.Hash();
  tombstone.vms = SplitIds(query.Blob());
  tombstone.final_state = Expect(db, "final_state", model::ParseOperationState(query.Text()));
  tombstone.first_seen = query.At();
  tombstone.expires = query.At();
  return tombstone;
}

void InsertEvents(Db& db, std::span<const model::Event> events, Time now) {
  for (const model::Event& event : events) {
    db.Run(
        "INSERT INTO outbox (id, type, project, subject, data, at_ms) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        event.id, event.type, event.project, event.subject, event.data, now);
  }
}

void InsertTimeline(Db& db, std::int64_t sequence, std::span<const model::TimelineEntry> entries,
                    Time now) {
  if (entries.empty()) return;
  std::int64_t last = 0;
  {
    Query query = db.Prepare("SELECT coalesce(max(number), 0) FROM timeline WHERE operation = ?1");
    if (query.Bind(sequence).Next()) last = query.Int();
  }
  InsertTimeline(db, {sequence, last}, entries, now);
}

void InsertTimeline(Db& db, const TimelineEnd& end, std::span<const model::TimelineEntry> entries,
                    Time now) {
  std::int64_t number = end.last;
  for (const model::TimelineEntry& entry : entries) {
    const Time at = entry.at == Time{} ? now : std::min(entry.at, now);
    db.Run(
        "INSERT INTO timeline (operation, number, at_ms, replica, attempt, item_index, event, "
        "detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        end.sequence, ++number, at, entry.replica, entry.attempt, entry.index, entry.event,
        entry.detail);
  }
}

std::string JoinIds(std::span<const model::VmId> ids) {
  std::string joined;
  joined.reserve(ids.size() * 16);
  for (const model::VmId& id : ids) {
    joined.append(reinterpret_cast<const char*>(id.value.bytes.data()), id.value.bytes.size());
  }
  return joined;
}

std::vector<model::VmId> SplitIds(std::string_view joined) {
  std::vector<model::VmId> ids(joined.size() / 16);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto part = joined.substr(i * 16, 16);
    std::copy(part.begin(), part.end(), ids[i].value.bytes.begin());
  }
  return ids;
}

}  // namespace vmonce::ledger
