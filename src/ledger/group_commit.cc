#include "ledger/group_commit.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace vmonce::ledger {

GroupCommit::GroupCommit(Connections& connections, Clock& clock, Threads& threads,
                         std::size_t max_batch)
    : connections_(connections),
      clock_(clock),
      threads_(threads),
      max_batch_(std::max<std::size_t>(max_batch, 1)),
      monitor_(threads.NewMonitor()) {}

Status GroupCommit::Run(const Work& work) { return TakeTurn(work, true); }

Status GroupCommit::Look(const std::function<void(Db&)>& look) {
  return TakeTurn(
      [&look](Tx& tx) -> Status {
        look(tx.db);
        return {};
      },
      false);
}

Status GroupCommit::TakeTurn(const Work& work, bool writes) {
  const auto me = std::make_shared<Member>(work, writes, threads_);
  bool leads = false;
  {
    MonitorLock lock(*monitor_);
    queue_.push_back(me);
    leads = !has_leader_;
    has_leader_ = true;
  }
  if (!leads) {
    // Rung when the work is done, or to lead.
    me->bell.WaitUntil(kNever);
  }
  if (!me->is_done) Lead();
  return std::move(me->result);
}

std::size_t GroupCommit::Waiting() const {
  MonitorLock lock(*monitor_);
  return queue_.size();
}

void GroupCommit::Lead() {
  std::vector<MemberPointer> batch;
  {
    MonitorLock lock(*monitor_);
    const auto end =
        queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), max_batch_));
    batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
  }
  Commit(batch);
  MemberPointer next;
  {
    MonitorLock lock(*monitor_);
    has_leader_ = !queue_.empty();
    if (has_leader_) next = queue_.front();
  }
  // The next commit first: whoever is told comes back with more only later.
  if (next) next->bell.Ring();
  for (const MemberPointer& member : batch) {
    member->is_done = true;
    member->bell.Ring();
  }
}

void GroupCommit::Commit(std::span<const MemberPointer> batch) {
  const auto writer = connections_.Writer();
  if (!writer) {
    for (const MemberPointer& member : batch) member->result = std::unexpected(writer.error());
    return;
  }
  if (RunTogether(**writer, batch) == End::kUndone && batch.size() > 1) {
    // One member's trouble undid the others' work too: each once more, alone. After an error at
    // COMMIT nobody is run again, since the work may have been done.
    for (const MemberPointer& member : batch) {
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

GroupCommit::End GroupCommit::RunTogether(Db& db, std::span<const MemberPointer> batch) {
  const bool writes = std::ranges::any_of(batch, [](const auto& member) { return member->writes; });
  if (writes) db.Run("BEGIN IMMEDIATE");
  if (auto error = db.TakeError()) {
    for (const MemberPointer& member : batch) member->result = std::unexpected(*error);
    return End::kCommitted;  // Nobody can have undone another's work: there was none.
  }
  Counters counters(db);
  for (const MemberPointer& member : batch) {
    if (!RunMember(db, *member, counters)) return Undo(db);
  }
  counters.Write();
  if (auto error = db.TakeError()) {
    // Counters that break a rule of the schema are one member's doing.
    for (const MemberPointer& member : batch) {
      if (member->result) member->result = std::unexpected(*error);
    }
    return Undo(db);
  }
  return writes ? Finish(db, batch) : End::kCommitted;
}

// False when the member failed and left something behind that only the end of the transaction can
// undo. That is rare: members look before they write. A savepoint for each would copy every page
// that it changes.
bool GroupCommit::RunMember(Db& db, Member& member, Counters& counters) {
  const std::int64_t changes = db.ChangesEver() + counters.Changes();
  Tx tx(db, clock_.Now(), counters);
  member.result = member.work(tx);
  if (auto error = db.TakeError()) member.result = std::unexpected(std::move(*error));
  if (member.result) return true;
  // A full disk, among others, makes SQLite undo the whole transaction by itself; what came later
  // would then be committed one by one.
  return !db.IsAutocommit() && db.ChangesEver() + counters.Changes() == changes;
}

GroupCommit::End GroupCommit::Undo(Db& db) {
  if (!db.IsAutocommit()) db.Run("ROLLBACK");
  db.TakeError();
  connections_.hot_vms().Undone();
  CHECK_MSG(db.IsAutocommit(), "a transaction that can neither be kept nor undone");
  return End::kUndone;
}

GroupCommit::End GroupCommit::Finish(Db& db, std::span<const MemberPointer> batch) {
  HotVms& hot_vms = connections_.hot_vms();
  hot_vms.BeforeCommit();
  db.Run("COMMIT");
  const bool was_busy = db.LastCode() == SQLITE_BUSY;
  auto error = db.TakeError();
  if (!error) {
    hot_vms.Committed();
    return End::kCommitted;
  }
  hot_vms.Forget();
  if (was_busy && !db.IsAutocommit()) {
    db.Run("ROLLBACK");
    db.TakeError();
  } else {
    // The pages may be in the write-ahead log, with or without the mark that makes them count.
    error->code = ErrorCode::kUnknown;
    connections_.Distrust();
  }
  for (const MemberPointer& member : batch) {
    if (member->result) member->result = std::unexpected(*error);
  }
  return End::kCommitted;
}

}  // namespace vmonce::ledger
