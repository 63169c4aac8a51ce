#include "ledger/key_release.h"

#include <fmt/format.h>

#include "ledger/rows.h"
#include "model/retention.h"

namespace vmonce::ledger {
namespace {

// Those without a key have their operation's id in its place; this one's operation is not known any
// more, but its VMs are nobody else's.
void ReleaseTombstone(Tx& tx, const model::Tombstone& tombstone) {
  if (tombstone.vms.empty()) {
    tx.db.Run("DELETE FROM tombstones WHERE project = ?1 AND key_hash = ?2", tombstone.project,
              tombstone.key_hash);
    return;
  }
  tx.db.Run("UPDATE tombstones SET key_hash = ?3 WHERE project = ?1 AND key_hash = ?2",
            tombstone.project, tombstone.key_hash, tombstone.vms.front());
}

Result<ports::ReleasedKey> ReleaseRecord(Tx& tx, const OperationRow& row, const std::string& by) {
  const model::Operation& operation = row.operation;
  if (!model::IsFinished(operation.state)) {
    return Fail(ErrorCode::kConflict,
                fmt::format("its operation is {}", ToString(operation.state)));
  }
  if (!model::LastGone(operation, FindVms(tx.db, row.vms))) {
    return Fail(ErrorCode::kConflict, "a VM that it made is not deleted");
  }
  tx.db.Run("UPDATE operations SET key_hash = NULL WHERE sequence = ?1", operation.sequence);
  // Answers that are kept in memory stand as long as the rows of their VMs do.
  for (const model::VmId& vm : row.vms) {
    tx.db.Run("UPDATE vms SET updated_ms = updated_ms WHERE id = ?1", vm);
  }
  model::TimelineEntry entry;
  entry.operation = operation.id;
  entry.attempt = operation.attempt;
  entry.event = "key_released";
  entry.detail = by;
  InsertTimeline(tx.db, operation.sequence, entry, tx.now);
  tx.counters.CountKeys(operation.project, -1);
  return ports::ReleasedKey{row.vms};
}

}  // namespace

Result<ports::ReleasedKey> ReleaseKey(Tx& tx, const model::ProjectId& project,
                                      const Digest& key_hash, const std::string& by) {
  if (const auto row = FindOperationByKey(tx.db, project, key_hash)) {
    return ReleaseRecord(tx, *row, by);
  }
  const auto tombstone = FindTombstone(tx.db, project, key_hash);
  if (!tombstone) return Fail(ErrorCode::kNotFound, "nothing has this key");
  ReleaseTombstone(tx, *tombstone);
  return ports::ReleasedKey{tombstone->vms};
}

}  // namespace vmonce::ledger
