// The ledger in one SQLite file (or in memory, for tests and the simulated world). docs/ledger.md
// tells the tables. One file has one serving process.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "base/threads.h"
#include "model/limits.h"
#include "ports/image_registry.h"
#include "ports/ledger.h"
#include "ports/ledger_keys.h"
#include "ports/ledger_rebuild.h"
#include "ports/ledger_watch.h"
#include "ports/token_store.h"

namespace vmonce::ledger {

struct SqliteLedgerOptions {
  // Empty: in memory, gone with the object; reads then take their turn on the one connection.
  std::string path;
  int readers = model::limits::kLedgerReaders;
  int page_cache_kib = model::limits::kLedgerPageCacheKib;
  // Moves what was committed from the write-ahead log into the file, beside the writer. Off: the
  // writer does it itself now and then. Never used in memory.
  bool has_checkpoint_thread = true;
  // Calls that share one commit.
  std::size_t max_batch = model::limits::kCommitBatch;
  // Told how long each write took, the wait for its commit included. On the caller's thread; must
  // not block. May be empty.
  std::function<void(std::chrono::nanoseconds)> on_write;
  // The file never grows beyond so many pages of 4 KiB; zero: the disk is the bound. A call that
  // needs more is kUnavailable.
  int max_pages = 0;
  // A ledger that holds no record and no host yet takes this id; any other keeps its own.
  model::LedgerId become;
};

// Thread-safe; every call blocks until its transaction is on the disk. Concurrent writers share a
// commit. What the contract of ports::Ledger leaves open is settled so:
// * Lists are newest first. A page holds at most limits::kPageItems rows.
// * A VM's version grows with every write that a user can see; taking and releasing a hold is none.
// * An Advance whose state change is illegal because another operation marked the VM for deletion
//   answers kMarked; any other illegal change is a bug (CHECK).
// * A host that is not active has no room. A finished operation holds no VM.
// * An error at COMMIT is kUnknown, and all connections are opened anew before the next use, so
//   that what is then read is what will stay.
class SqliteLedger final : public ports::Ledger,
                           public ports::ImageRegistry,
                           public ports::ImageFileRecords,
                           public ports::TokenStore,
                           public ports::LedgerRebuild,
                           public ports::KeyReleases {
 public:
  // Makes the file when there is none, and brings an older one up to date after copying it to
  // "<path>.before-NNNN". kConflict, with a text for people: another process serves the file, it is
  // of a newer version, or it is no ledger. kUnavailable: it cannot be opened or written. What is
  // borrowed outlives the ledger.
  static Result<std::unique_ptr<SqliteLedger>> Open(SqliteLedgerOptions options, Clock& clock,
                                                    Random& random, Threads& threads,
                                                    Logger& logger);
  struct Parts;
  // Only Open() has one.
  class Passkey {
    friend class SqliteLedger;
    Passkey() = default;
  };
  SqliteLedger(Passkey, std::unique_ptr<Parts> parts);
  ~SqliteLedger() override;
  SqliteLedger(const SqliteLedger&) = delete;
  SqliteLedger& operator=(const SqliteLedger&) = delete;

  // Lives as long as the ledger.
  const ports::LedgerWatch& Watch() const;
  // Holds what `other` does, its id included, and nothing of what it held. Both are in memory, and
  // nobody else uses either meanwhile.
  Status CopyFrom(SqliteLedger& other);

  model::LedgerId Id() const override;
  Time Now() override;
  Status Ping() override;

  std::vector<ports::AcceptOutcome> Accept(std::span<const ports::Submission> batch) override;
  ports::AcceptOutcome Revive(const model::OperationId& operation, int expected_attempt,
                              const model::Resources& quota,
                              const model::Resources& capacity) override;

  Result<std::vector<model::Operation>> TakeDue(const model::ReplicaId& owner, Milliseconds ttl,
                                                Milliseconds settle, int most) override;
  Result<std::vector<model::OperationId>> Renew(std::span<const model::Lease> leases,
                                                Milliseconds ttl) override;
  Result<ports::AdvanceOutcome> Record(const ports::Advance& advance) override;
  Result<std::optional<Time>> NextDue() override;
  Status MakeDue(const model::OperationId& operation) override;

  Result<std::optional<std::variant<ports::Known, ports::KnownTombstone>>> FindByKey(
      const model::ProjectId& project, const Digest& key_hash) override;
  Result<std::optional<model::Operation>> GetOperation(const model::OperationId& id) override;
  Result<ports::PageOf<model::Operation>> ListOperations(const model::ProjectId& project,
                                                         const ports::OperationFilter& filter,
                                                         const ports::Page& page) override;
  Result<std::optional<model::Vm>> GetVm(const model::VmId& id) override;
  Result<std::vector<model::Vm>> VmsOf(const model::OperationId& creator) override;
  Result<ports::PageOf<model::Vm>> ListVms(const model::ProjectId& project,
                                           const ports::VmFilter& filter,
                                           const ports::Page& page) override;
  Result<std::vector<model::TimelineEntry>> Timeline(const model::OperationId& id) override;
  Status AppendTimeline(std::span<const model::TimelineEntry> entries) override;
  Result<std::vector<model::Event>> Outbox(std::int64_t most) override;
  Result<ports::LedgerTotals> Totals() override;
  Result<model::Resources> Usage(const model::ProjectId& project) override;
  Result<std::int64_t> LiveKeys(const model::ProjectId& project) override;

  Status PutHost(const model::Host& host) override;
  Status MarkRegistered(const model::HostId& host) override;
  Status SetHostState(const model::HostId& host, model::HostState state) override;
  Status MarkReturned(const model::HostId& host) override;
  Result<std::vector<model::Host>> Hosts() override;
  Result<std::vector<model::HostId>> HostsUsingPort(const model::HostPort& port) override;

  Result<std::vector<model::Vm>> VmsOnHost(const model::HostId& host,
                                           std::span<const model::VmId> also) override;
  Result<std::vector<model::VmId>> InTombstones(std::span<const model::VmId> vms) override;
  Result<std::vector<model::VmId>> MovedAway(const model::HostId& host,
                                             std::span<const model::VmId> vms) override;
  Result<int> Observe(std::span<const ports::Observation> observations) override;
  Result<std::vector<ports::StraySighting>> NoteStrays(
      const model::HostId& host, std::span<const model::VmId> strays) override;
  Status MarkQuarantined(const model::HostId& host, const model::VmId& vm) override;

  Result<ports::SweepCounts> Sweep(const model::RetentionPolicy& policy, int most_rows) override;

  Result<ports::ImageAddition> AddImage(const model::StoredImage& image) override;
  Result<ports::ImageRemoval> RemoveImage(std::string_view name) override;
  Result<std::vector<model::StoredImage>> StoredImages() override;
  Result<ports::FileVerdict> KeepFile(const std::string& path, const FileIdentity& now) override;
  Result<ports::FileVerdict> CheckFile(const std::string& path,
                                       const std::optional<FileIdentity>& now) override;
  Result<std::vector<model::Token>> Tokens() override;
  Result<ports::TokenMade> CreateToken(const model::Token& token) override;
  Result<std::optional<model::Token>> RevokeToken(const model::TokenId& id) override;

  Result<ports::ReleasedKey> ReleaseKey(const model::ProjectId& project, const Digest& key_hash,
                                        const std::string& by) override;

  Result<std::vector<model::Operation>> Unfinished() override;
  Result<std::vector<std::string>> Rewrite(const ports::RebuiltOperation& rebuilt) override;
  Status RaiseSequence(std::int64_t newest) override;
  Status SetUnread(const model::HostId& host, bool is_unread) override;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace vmonce::ledger
