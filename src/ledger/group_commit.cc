#include "ledger/group_commit.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace vmonce::ledger {

GroupCommit::GroupCommit(Connections& connections, Clock& clock, Threads& threads,
                         std::size_t max_batch)
    : connections_(connections),
      clock_(clock),
      max_batch_(std::max<std::size_t>(max_batch, 1)),
      monitor_(threads.NewMonitor()) {}

Status GroupCommit::Run(const Work& work) {
  Member me{work, {}};
  MonitorLock lock(*monitor_);
  queue_.push_back(&me);
  while (!me.is_done) {
    if (has_leader_) {
      monitor_->Wait();
    } else {
      Lead();
    }
  }
  return me.result;
}

std::size_t GroupCommit::Waiting() const {
  MonitorLock lock(*monitor_);
  return queue_.size();
}

void GroupCommit::Lead() {
  has_leader_ = true;
  const std::size_t size = std::min(queue_.size(), max_batch_);
  std::vector<Member*> batch(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(size));
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(size));
  monitor_->Unlock();
  Commit(batch);
  monitor_->Lock();
  for (Member* member : batch) member->is_done = true;
  has_leader_ = false;
  monitor_->NotifyAll();
}

void GroupCommit::Commit(std::span<Member* const> batch) {
  const auto writer = connections_.Writer();
  if (!writer) {
    for (Member* member : batch) member->result = std::unexpected(writer.error());
    return;
  }
  if (RunTogether(**writer, batch) == End::kUndone && batch.size() > 1) {
    // One member's trouble (a disk that is full for it) undid the others' work too: each once more,
    // alone. After an error at COMMIT nobody is run again, since the work may have been done.
    for (Member* const& member : batch) {
      const auto again = connections_.Writer();
      if (again) {
        RunTogether(**again, std::span(&member, 1));
      } else {
        member->result = std::unexpected(again.error());
      }
    }
  }
  connections_.KeepLogShort();
  // Whose commit is in doubt looks whether it happened, and looking waits until the connections
  // were opened anew: here, since nobody else may ever write. Where that fails, readers are told.
  if (!connections_.Writer()) return;
}

GroupCommit::End GroupCommit::RunTogether(Db& db, std::span<Member* const> batch) {
  db.Run("BEGIN IMMEDIATE");
  if (auto error = db.TakeError()) {
    for (Member* member : batch) member->result = std::unexpected(*error);
    return End::kCommitted;  // Nobody can have undone another's work: there was none.
  }
  for (Member* member : batch) {
    if (!RunMember(db, *member, batch.size() > 1)) return End::kUndone;
  }
  return Finish(db, batch);
}

// False when the transaction is gone as a whole.
bool GroupCommit::RunMember(Db& db, Member& member, bool has_savepoint) {
  if (has_savepoint) db.Run("SAVEPOINT member");
  Tx tx(db, clock_.Now());
  member.result = member.work(tx);
  if (member.result) tx.counters.Write();
  if (member.result && has_savepoint) db.Run("RELEASE member");
  if (auto error = db.TakeError()) member.result = std::unexpected(std::move(*error));
  if (member.result) return true;
  // A full disk, among others, makes SQLite undo the whole transaction by itself; a later SAVEPOINT
  // would then begin, and its RELEASE commit, a transaction of its own.
  if (db.IsAutocommit()) return false;
  if (has_savepoint) {
    db.Run("ROLLBACK TO member");
    db.Run("RELEASE member");
    if (!db.TakeError()) return true;
  }
  if (!db.IsAutocommit()) db.Run("ROLLBACK");
  db.TakeError();
  CHECK_MSG(db.IsAutocommit(), "a transaction that can neither be kept nor undone");
  return false;
}

GroupCommit::End GroupCommit::Finish(Db& db, std::span<Member* const> batch) {
  db.Run("COMMIT");
  const bool was_busy = db.LastCode() == SQLITE_BUSY;
  auto error = db.TakeError();
  if (!error) return End::kCommitted;
  if (was_busy && !db.IsAutocommit()) {
    db.Run("ROLLBACK");
    db.TakeError();
  } else {
    // The pages may be in the write-ahead log, with or without the mark that makes them count.
    error->code = ErrorCode::kUnknown;
    connections_.Distrust();
  }
  for (Member* member : batch) {
    if (member->result) member->result = std::unexpected(*error);
  }
  return End::kCommitted;
}

}  // namespace vmonce::ledger
