// Concurrent writers share a transaction, and so its fsync. Whoever comes first leads: it takes all
// that wait, runs one after the other, and commits once; the next batch gathers meanwhile. A member
// that fails after it has written undoes the batch, and each is run again alone. No thread of its
// own, no lingering.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/doorbell.h"
#include "base/result.h"
#include "base/threads.h"
#include "ledger/connections.h"
#include "ledger/transaction.h"

namespace vmonce::ledger {

// Thread-safe.
class GroupCommit {
 public:
  // A part of the transaction. It must not wait for anything and not use the ledger otherwise, and
  // it may be run twice: its first lines reset what it answers. An error, its own or one that stuck
  // to the connection, undoes all it did and nothing else, and is the answer of Run().
  using Work = std::function<Status(Tx&)>;

  GroupCommit(Connections& connections, Clock& clock, Threads& threads, std::size_t max_batch);

  // Returns when what `work` did is on the disk, or surely is not, or (kUnknown) may be.
  Status Run(const Work& work);

  // Of a database in memory, where one connection does everything: runs `look`, which writes
  // nothing, when its turn has come, and without a transaction where no writer shares the turn.
  // What it sees is consistent. The answer is what stuck to the connection.
  Status Look(const std::function<void(Db&)>& look);

  // Calls that wait for the commit after the present one.
  std::size_t Waiting() const;

 private:
  // Shared by its caller and by the leader that tells it, since the caller goes as soon as it
  // knows.
  struct Member {
    Member(const Work& w, bool does_write, Threads& threads)
        : work(w), writes(does_write), bell(threads) {}

    const Work& work;
    const bool writes;
    Status result;
    // Written before the bell is rung, and read after it.
    bool is_done = false;
    Doorbell bell;
  };
  using MemberPointer = std::shared_ptr<Member>;
  // What became of the transaction as a whole.
  enum class End { kCommitted, kUndone };

  Status TakeTurn(const Work& work, bool writes);
  // Commits what waits, whose first is the caller's own, and names the next leader.
  void Lead();
  void Commit(std::span<const MemberPointer> batch);
  End RunTogether(Db& db, std::span<const MemberPointer> batch);
  bool RunMember(Db& db, Member& member, Counters& counters);
  End Undo(Db& db);
  End Finish(Db& db, std::span<const MemberPointer> batch);

  Connections& connections_;
  Clock& clock_;
  Threads& threads_;
  const std::size_t max_batch_;
  std::unique_ptr<Monitor> monitor_;
  std::deque<MemberPointer> queue_ GUARDED_BY(*monitor_);
  bool has_leader_ GUARDED_BY(*monitor_) = false;
};

}  // namespace vmonce::ledger
