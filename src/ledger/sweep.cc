#include "ledger/sweep.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/rows.h"
#include "model/retention.h"

namespace vmonce::ledger {
namespace {

using model::OperationId;

// What may have expired, a page of it, and where the next page begins.
struct Candidates {
  std::set<OperationId> operations;
  SweepCursor next;
};

struct Look {
  Time latest;
  int most;
};

void FindEnded(Query& query, const Look& look, SweepCursor::RowPlace& place,
               std::set<OperationId>& operations) {
  query.Bind(place.end, place.sequence, look.latest, look.most);
  int rows = 0;
  for (; query.Next(); ++rows) {
    operations.insert(OperationId{query.Id()});
    place.end = query.At();
    place.sequence = query.Int();
  }
  if (rows < look.most) place = {};
}

void FindDeleted(Query& query, const Look& look, SweepCursor::VmPlace& place,
                 std::set<OperationId>& operations) {
  query.Bind(place.end, place.vm, look.latest, look.most);
  int rows = 0;
  for (; query.Next(); ++rows) {
    operations.insert(OperationId{query.Id()});
    place.end = query.At();
    place.vm = model::VmId{query.Id()};
  }
  if (rows < look.most) place = {};
}

Candidates FindCandidates(Tx& tx, const SweepRequest& request) {
  Candidates candidates;
  candidates.next = request.cursor;
  const Look short_lived{tx.now - request.policy.key_ttl, request.most_rows};
  const Look long_lived{tx.now - request.policy.retention, request.most_rows};
  {
    Query query = tx.db.Prepare(
        "SELECT id, finished_ms, sequence FROM operations WHERE finished_ms IS NOT NULL "
        "AND kind NOT IN ('create', 'delete') AND (finished_ms, sequence) > (?1, ?2) "
        "AND finished_ms <= ?3 ORDER BY finished_ms, sequence LIMIT ?4");
    FindEnded(query, short_lived, candidates.next.ended_short, candidates.operations);
  }
  {
    Query query = tx.db.Prepare(
        "SELECT id, finished_ms, sequence FROM operations WHERE finished_ms IS NOT NULL "
        "AND (kind = 'delete' OR (kind = 'create' AND state = 'failed')) "
        "AND (finished_ms, sequence) > (?1, ?2) AND finished_ms <= ?3 "
        "ORDER BY finished_ms, sequence LIMIT ?4");
    FindEnded(query, long_lived, candidates.next.ended_long, candidates.operations);
  }
  Query query = tx.db.Prepare(
      "SELECT operation, deleted_ms, id FROM vms WHERE deleted_ms IS NOT NULL "
      "AND (deleted_ms, id) > (?1, ?2) AND deleted_ms <= ?3 ORDER BY deleted_ms, id LIMIT ?4");
  FindDeleted(query, long_lived, candidates.next.deleted, candidates.operations);
  return candidates;
}

void WriteTombstone(Tx& tx, const OperationRow& row, Time expires) {
  const model::Operation& operation = row.operation;
  const std::string vms = JoinIds(row.vms);
  Query query = tx.db.Prepare(
      "INSERT INTO tombstones (project, key_hash, fingerprint, vm_ids, made_vms, final_state, "
      "first_seen_ms, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
  query.Put(operation.project);
  if (operation.key_hash) {
    query.Put(*operation.key_hash);
  } else {
    query.Put(operation.id);
  }
  const std::span blob(reinterpret_cast<const std::uint8_t*>(vms.data()), vms.size());
  const bool made_vms = operation.kind == model::OperationKind::kCreate;
  query.Bind(operation.fingerprint, blob, made_vms, ToString(operation.state), operation.accepted,
             expires);
  query.Done();
}

void Expire(Tx& tx, const OperationRow& row, const model::RetentionPolicy& policy) {
  const model::Operation& operation = row.operation;
  const bool is_create = operation.kind == model::OperationKind::kCreate;
  // Without a key nobody can ask for it; a create's VMs must be known all the same when they are
  // seen on a host again.
  if (operation.key_hash || is_create) {
    WriteTombstone(tx, row, tx.now + policy.tombstone_retention);
  }
  if (is_create) {
    for (const model::VmId& vm : row.vms) {
      tx.db.Run("INSERT OR IGNORE INTO tombstone_vms (id) VALUES (?1)", vm);
      tx.db.Run("DELETE FROM vms WHERE id = ?1", vm);
      tx.db.Run("DELETE FROM former_hosts WHERE vm = ?1", vm);
    }
  }
  tx.db.Run("DELETE FROM timeline WHERE operation = ?1", operation.sequence);
  tx.db.Run("DELETE FROM operations WHERE sequence = ?1", operation.sequence);
  tx.counters.Count(operation.state, -1);
  if (operation.key_hash) tx.counters.CountKeys(operation.project, -1);
}

int ExpireRecords(Tx& tx, const SweepRequest& request) {
  const Candidates candidates = FindCandidates(tx, request);
  int expired = 0;
  bool is_cut_short = false;
  for (const OperationId& id : candidates.operations) {
    if (!tx.db.ok()) return expired;
    if (expired == request.most_rows) {
      is_cut_short = true;
      break;
    }
    const auto row = FindOperation(tx.db, id);
    if (!row) continue;
    const auto vms = FindVms(tx.db, row->vms);
    const auto expiry = RecordExpiry(row->operation, LastGone(row->operation, vms), request.policy);
    if (!expiry || *expiry > tx.now) continue;
    Expire(tx, *row, request.policy);
    ++expired;
  }
  // What was not looked at is found again from the same place.
  if (!is_cut_short) request.cursor = candidates.next;
  return expired;
}

int DropTombstones(Tx& tx, int most) {
  struct Row {
    std::string project;
    std::string key;
    std::string vms;
    bool made_vms = false;
  };
  std::vector<Row> rows;
  {
    Query query = tx.db.Prepare(
        "SELECT project, key_hash, vm_ids, made_vms FROM tombstones WHERE expires_ms <= ?1 "
        "ORDER BY expires_ms LIMIT ?2");
    query.Bind(tx.now, most);
    while (query.Next()) {
      Row& row = rows.emplace_back();
      row.project = query.Text();
      row.key = query.Blob();
      row.vms = query.Blob();
      row.made_vms = query.Bool();
    }
  }
  for (const Row& row : rows) {
    // A PATCH's tombstone names a VM that another record made.
    const auto vms = row.made_vms ? SplitIds(row.vms) : std::vector<model::VmId>();
    for (const model::VmId& vm : vms) tx.db.Run("DELETE FROM tombstone_vms WHERE id = ?1", vm);
    const std::span key(reinterpret_cast<const std::uint8_t*>(row.key.data()), row.key.size());
    tx.db.Run("DELETE FROM tombstones WHERE project = ?1 AND key_hash = ?2", row.project, key);
  }
  return static_cast<int>(rows.size());
}

int DropEvents(Tx& tx, Time latest, int most) {
  std::int64_t last = 0;
  {
    // Rows are numbered in the order of their times.
    Query query = tx.db.Prepare("SELECT number, at_ms FROM outbox ORDER BY number LIMIT ?1");
    query.Bind(most);
    while (query.Next()) {
      const std::int64_t number = query.Int();
      if (query.At() > latest) break;
      last = number;
    }
  }
  if (last == 0) return 0;
  tx.db.Run("DELETE FROM outbox WHERE number <= ?1", last);
  return tx.db.Changes();
}

}  // namespace

ports::SweepCounts Sweep(Tx& tx, const SweepRequest& request) {
  ports::SweepCounts counts;
  counts.expired = ExpireRecords(tx, request);
  counts.tombstones_dropped = DropTombstones(tx, request.most_rows);
  counts.events_dropped =
      DropEvents(tx, tx.now - request.policy.outbox_retention, request.most_rows);
  return counts;
}

}  // namespace vmonce::ledger
