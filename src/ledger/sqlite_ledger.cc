#include "ledger/sqlite_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "ledger/accept.h"
#include "ledger/advance.h"
#include "ledger/connections.h"
#include "ledger/copy_rows.h"
#include "ledger/forwards.h"
#include "ledger/group_commit.h"
#include "ledger/hosts.h"
#include "ledger/image_files.h"
#include "ledger/images.h"
#include "ledger/key_release.h"
#include "ledger/lock_file.h"
#include "ledger/migrate.h"
#include "ledger/reads.h"
#include "ledger/rebuild.h"
#include "ledger/rows.h"
#include "ledger/sweep.h"
#include "ledger/tokens.h"
#include "model/auth_limits.h"
#include "model/limits.h"

namespace vmonce::ledger {

using ports::AcceptOutcome;

struct SqliteLedger::Parts {
  Parts(SqliteLedgerOptions opened_with, Clock& ledger_clock, UniqueFd lock_file)
      : options(std::move(opened_with)), clock(ledger_clock), lock(std::move(lock_file)) {}

  // Runs `work` in a transaction shared with other writers.
  template <typename T>
  Result<T> Write(const std::function<T(Tx&)>& work) {
    std::optional<T> answer;
    const Instant began = clock.Monotonic();
    Status done = commit->Run([&](Tx& tx) -> Status {
      answer = work(tx);
      return {};
    });
    if (options.on_write) options.on_write(clock.Monotonic() - began);
    if (!done) return Context("ledger", std::move(done.error()));
    return std::move(*answer);
  }

  // Runs `work` on a consistent snapshot.
  template <typename T>
  Result<T> Read(const std::function<T(Db&)>& work) {
    std::optional<T> answer;
    if (!connections->HasReaders()) {
      const Status done = commit->Look([&](Db& db) { answer = work(db); });
      if (!done) return Context("ledger", done.error());
      return std::move(*answer);
    }
    if (connections->IsBroken()) {
      // A commit of nothing needs no space, and opens the file anew where that can be done again.
      if (Status opened = commit->Run([](Tx&) -> Status { return {}; }); !opened) {
        return Context("ledger", std::move(opened.error()));
      }
    }
    Status done = connections->Read([&](Db& db) { answer = work(db); });
    if (!done) return Context("ledger", std::move(done.error()));
    return std::move(*answer);
  }

  // We hold the file's lock, so every process that leased something is dead: its work is due now,
  // and not when the lease would have run out. What its calls may still do is bounded by the settle
  // time from now on, as ever.
  Status EndDeadLeases() {
    return commit->Run([](Tx& tx) -> Status {
      tx.db.Run(
          "UPDATE operations SET lease_until_ms = ?1 "
          "WHERE finished_ms IS NULL AND lease_owner GLOB 'r-*' AND lease_until_ms > ?1",
          tx.now);
      return {};
    });
  }

  AcceptOutcome AcceptAlone(const ports::Submission& submission);

  const SqliteLedgerOptions options;
  Clock& clock;
  UniqueFd lock;
  model::LedgerId id;
  SweepCursor sweep_cursor;  // Used within transactions only, which run one after the other.
  std::unique_ptr<Connections> connections;
  std::unique_ptr<GroupCommit> commit;
};

namespace {

int RowsOf(const ports::Page& page) { return std::clamp(page.most, 1, model::limits::kPageItems); }

Result<std::string> ReadLedgerId(Db& db) {
  std::string id;
  {
    Query query = db.Prepare("SELECT value FROM meta WHERE name = 'ledger_id'");
    if (query.Next()) id = query.Text();
  }
  if (auto error = db.TakeError()) return std::unexpected(std::move(*error));
  if (id.empty()) return Fail(ErrorCode::kInternal, "the ledger has no id");
  return id;
}

// Its id stands in markers and labels: only a ledger that has written none may change it.
Status Become(Db& db, const model::LedgerId& id) {
  if (id.value.empty()) return {};
  db.Run(
      "UPDATE meta SET value = ?1 WHERE name = 'ledger_id' AND NOT EXISTS (SELECT 1 FROM "
      "operations) AND NOT EXISTS (SELECT 1 FROM tombstones) AND NOT EXISTS (SELECT 1 FROM hosts)",
      id);
  if (auto error = db.TakeError()) return std::unexpected(std::move(*error));
  return {};
}

std::unexpected<Error> BadCursor() {
  return Fail(ErrorCode::kInvalid, "the page's cursor is not one of this list");
}

// What a statement that must find its row says when it does not.
Status FoundOr(Result<bool> is_found, std::string_view what) {
  if (!is_found) return std::unexpected(std::move(is_found.error()));
  if (!*is_found) return Fail(ErrorCode::kNotFound, fmt::format("no such {}", what));
  return {};
}

}  // namespace

Result<std::unique_ptr<SqliteLedger>> SqliteLedger::Open(SqliteLedgerOptions options, Clock& clock,
                                                         Random& random, Threads& threads,
                                                         Logger& logger) {
  UniqueFd lock;
  if (!options.path.empty()) {
    auto taken = TakeLockFile(options.path + ".lock");
    if (!taken) return std::unexpected(std::move(taken.error()));
    lock = std::move(*taken);
  }
  auto writer = Db::Open(options.path, OpenMode::kReadWrite);
  if (!writer) return std::unexpected(std::move(writer.error()));
  sqlite3_busy_timeout((*writer)->Raw(), static_cast<int>(model::limits::kLedgerBusy.count()));
  Status migrated = Migrate(**writer, options.path, EmbeddedMigrations(), random, logger);
  if (!migrated) return std::unexpected(std::move(migrated.error()));
  if (Status became = Become(**writer, options.become); !became) {
    return std::unexpected(std::move(became.error()));
  }
  auto id = ReadLedgerId(**writer);
  if (!id) return std::unexpected(std::move(id.error()));

  ConnectionOptions connection_options;
  connection_options.path = options.path;
  connection_options.readers = std::max(options.readers, 1);
  connection_options.page_cache_kib = options.page_cache_kib;
  connection_options.max_pages = options.max_pages;
  connection_options.has_checkpoint_thread = options.has_checkpoint_thread;
  auto parts = std::make_unique<Parts>(std::move(options), clock, std::move(lock));
  parts->id = model::LedgerId{std::move(*id)};
  parts->connections = std::make_unique<Connections>(std::move(connection_options),
                                                     std::move(*writer), threads, logger);
  if (Status started = parts->connections->Start(); !started) {
    return std::unexpected(std::move(started.error()));
  }
  parts->commit =
      std::make_unique<GroupCommit>(*parts->connections, clock, threads, parts->options.max_batch);
  if (parts->lock.IsOpen()) {
    if (Status ended = parts->EndDeadLeases(); !ended) return std::unexpected(ended.error());
  }
  return std::make_unique<SqliteLedger>(Passkey{}, std::move(parts));
}

SqliteLedger::SqliteLedger(Passkey, std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SqliteLedger::~SqliteLedger() = default;

Status SqliteLedger::CopyFrom(SqliteLedger& other) {
  CHECK_MSG(parts_->options.path.empty() && other.parts_->options.path.empty(),
            "a ledger in a file is copied as a file");
  const auto copied = other.parts_->Read<Status>([this](Db& from) {
    return parts_->commit->Run([&from](Tx& tx) -> Status {
      CopyRows(from, tx.db);
      return {};
    });
  });
  if (!copied) return std::unexpected(copied.error());
  if (!*copied) return *copied;
  parts_->id = other.parts_->id;
  parts_->sweep_cursor = {};
  return {};
}

model::LedgerId SqliteLedger::Id() const { return parts_->id; }
Time SqliteLedger::Now() { return parts_->clock.Now(); }

const ports::LedgerWatch& SqliteLedger::Watch() const {
  return parts_->connections->hot_vms().watch();
}

Status SqliteLedger::Ping() {
  auto answer = parts_->Read<bool>([](Db& db) {
    Query query = db.Prepare("SELECT 1 FROM totals");
    return query.Next();
  });
  if (answer) return {};
  return Fail(ErrorCode::kUnavailable, std::move(answer.error().detail));
}

// --- Accepting

std::vector<AcceptOutcome> SqliteLedger::Accept(std::span<const ports::Submission> batch) {
  auto outcomes =
      parts_->Write<std::vector<AcceptOutcome>>([&](Tx& tx) { return AcceptAll(tx, batch); });
  if (outcomes) return std::move(*outcomes);
  const Error& error = outcomes.error();
  if (batch.size() == 1 || error.code == ErrorCode::kUnknown) {
    return std::vector<AcceptOutcome>(batch.size(), std::unexpected(error));
  }
  // One member's trouble undid them all: each once more, alone, until the ledger does not work at
  // all. The last word on a member is always about a transaction that held nothing else of it.
  std::vector<AcceptOutcome> alone;
  alone.reserve(batch.size());
  for (const ports::Submission& submission : batch) {
    alone.push_back(parts_->AcceptAlone(submission));
    const AcceptOutcome& last = alone.back();
    if (!last && last.error().code != ErrorCode::kInternal) break;
  }
  const AcceptOutcome not_tried = Fail(ErrorCode::kUnavailable, error.detail);
  alone.resize(batch.size(), not_tried);
  return alone;
}

AcceptOutcome SqliteLedger::Parts::AcceptAlone(const ports::Submission& submission) {
  auto outcomes = Write<std::vector<AcceptOutcome>>(
      [&](Tx& tx) { return AcceptAll(tx, std::span(&submission, 1)); });
  if (!outcomes) return std::unexpected(std::move(outcomes.error()));
  return std::move(outcomes->front());
}

AcceptOutcome SqliteLedger::Revive(const model::OperationId& operation, int expected_attempt,
                                   const model::Resources& quota,
                                   const model::Resources& capacity) {
  auto outcome = parts_->Write<AcceptOutcome>(
      [&](Tx& tx) { return ledger::Revive(tx, {operation, expected_attempt, quota, capacity}); });
  if (!outcome) return std::unexpected(std::move(outcome.error()));
  return std::move(*outcome);
}

// --- Workers

Result<std::vector<model::Operation>> SqliteLedger::TakeDue(const model::ReplicaId& owner,
                                                            Milliseconds ttl, Milliseconds settle,
                                                            int most) {
  // Workers ask often and mostly in vain: a look first costs no commit.
  auto next = NextDue();
  if (!next) return std::unexpected(std::move(next.error()));
  if (!*next || **next > Now()) return std::vector<model::Operation>();
  return parts_->Write<std::vector<model::Operation>>(
      [&](Tx& tx) { return ledger::TakeDue(tx, {owner, ttl, settle, most}); });
}

Result<std::vector<model::OperationId>> SqliteLedger::Renew(std::span<const model::Lease> leases,
                                                            Milliseconds ttl) {
  return parts_->Write<std::vector<model::OperationId>>(
      [&](Tx& tx) { return ledger::Renew(tx, leases, ttl); });
}

Result<ports::AdvanceOutcome> SqliteLedger::Record(const ports::Advance& advance) {
  auto outcome = ports::AdvanceOutcome::kRecorded;
  Status done = parts_->commit->Run([&](Tx& tx) -> Status {
    outcome = ledger::Record(tx, advance);
    if (outcome == ports::AdvanceOutcome::kRecorded) return {};
    return Fail(ErrorCode::kConflict, "");  // Undoes what was written before it was refused.
  });
  if (done) return outcome;
  // An error of the connection itself is never kConflict.
  if (done.error().code == ErrorCode::kConflict) return outcome;
  return Context("ledger", std::move(done.error()));
}

Result<std::optional<Time>> SqliteLedger::NextDue() {
  return parts_->Read<std::optional<Time>>([](Db& db) { return ledger::NextDue(db); });
}

Status SqliteLedger::MakeDue(const model::OperationId& operation) {
  return parts_->commit->Run([&](Tx& tx) -> Status {
    ledger::MakeDue(tx, operation);
    return {};
  });
}

// --- Reads

Result<std::optional<std::variant<ports::Known, ports::KnownTombstone>>> SqliteLedger::FindByKey(
    const model::ProjectId& project, const Digest& key_hash) {
  return parts_->Read<std::optional<std::variant<ports::Known, ports::KnownTombstone>>>(
      [&](Db& db) {
        const bool is_writer = db.hot_vms() != nullptr;  // In memory.
        return FindKey(db, project, key_hash,
                       is_writer ? nullptr : &parts_->connections->hot_vms());
      });
}

Result<std::optional<model::Operation>> SqliteLedger::GetOperation(const model::OperationId& id) {
  return parts_->Read<std::optional<model::Operation>>(
      [&](Db& db) -> std::optional<model::Operation> {
        auto row = FindOperation(db, id);
        if (!row) return std::nullopt;
        return std::move(row->operation);
      });
}

Result<ports::PageOf<model::Operation>> SqliteLedger::ListOperations(
    const model::ProjectId& project, const ports::OperationFilter& filter,
    const ports::Page& page) {
  std::optional<std::int64_t> before;
  if (!page.after.empty()) {
    before = ParseSequenceCursor(page.after);
    if (!before) return BadCursor();
  }
  return parts_->Read<ports::PageOf<model::Operation>>(
      [&](Db& db) { return ledger::ListOperations(db, {project, filter, RowsOf(page), before}); });
}

Result<std::optional<model::Vm>> SqliteLedger::GetVm(const model::VmId& id) {
  if (auto hot = parts_->connections->hot_vms().Find(id)) return hot;
  return parts_->Read<std::optional<model::Vm>>([&](Db& db) { return FindVm(db, id); });
}

Result<std::vector<model::Vm>> SqliteLedger::VmsOf(const model::OperationId& creator) {
  return parts_->Read<std::vector<model::Vm>>([&](Db& db) { return ledger::VmsOf(db, creator); });
}

Result<ports::PageOf<model::Vm>> SqliteLedger::ListVms(const model::ProjectId& project,
                                                       const ports::VmFilter& filter,
                                                       const ports::Page& page) {
  std::optional<model::VmId> before;
  if (!page.after.empty()) {
    before = ParseVmCursor(page.after);
    if (!before) return BadCursor();
  }
  return parts_->Read<ports::PageOf<model::Vm>>(
      [&](Db& db) { return ledger::ListVms(db, {project, filter, RowsOf(page), before}); });
}

Result<std::vector<model::TimelineEntry>> SqliteLedger::Timeline(const model::OperationId& id) {
  return parts_->Read<std::vector<model::TimelineEntry>>(
      [&](Db& db) { return ledger::Timeline(db, id); });
}

Status SqliteLedger::AppendTimeline(std::span<const model::TimelineEntry> entries) {
  if (entries.empty()) return {};
  return parts_->commit->Run([&](Tx& tx) -> Status {
    ledger::AppendTimeline(tx, entries);
    return {};
  });
}

Result<std::vector<model::Event>> SqliteLedger::Outbox(std::int64_t most) {
  return parts_->Read<std::vector<model::Event>>([&](Db& db) { return ledger::Outbox(db, most); });
}

Result<ports::LedgerTotals> SqliteLedger::Totals() {
  return parts_->Read<ports::LedgerTotals>([](Db& db) { return ledger::Totals(db); });
}

Result<model::Resources> SqliteLedger::Usage(const model::ProjectId& project) {
  return parts_->Read<model::Resources>([&](Db& db) { return Counters(db).UsedBy(project); });
}

Result<std::int64_t> SqliteLedger::LiveKeys(const model::ProjectId& project) {
  return parts_->Read<std::int64_t>([&](Db& db) { return Counters(db).LiveKeys(project); });
}

// --- Hosts and the reconciler

Status SqliteLedger::PutHost(const model::Host& host) {
  return parts_->commit->Run([&](Tx& tx) -> Status {
    ledger::PutHost(tx, host);
    return {};
  });
}

Status SqliteLedger::MarkRegistered(const model::HostId& host) {
  return FoundOr(parts_->Write<bool>([&](Tx& tx) { return ledger::MarkRegistered(tx, host); }),
                 "host");
}

Status SqliteLedger::SetHostState(const model::HostId& host, model::HostState state) {
  return FoundOr(parts_->Write<bool>([&](Tx& tx) { return ledger::SetHostState(tx, host, state); }),
                 "host");
}

Status SqliteLedger::MarkReturned(const model::HostId& host) {
  return parts_->commit->Run([&](Tx& tx) -> Status {
    ledger::MarkReturned(tx, host);
    return {};
  });
}

Result<std::vector<model::Host>> SqliteLedger::Hosts() {
  return parts_->Read<std::vector<model::Host>>([](Db& db) { return ledger::Hosts(db); });
}

Result<std::vector<model::HostId>> SqliteLedger::HostsUsingPort(const model::HostPort& port) {
  return parts_->Read<std::vector<model::HostId>>(
      [&](Db& db) { return ledger::HostsUsingPort(db, port); });
}

Result<std::vector<model::Vm>> SqliteLedger::VmsOnHost(const model::HostId& host,
                                                       std::span<const model::VmId> also) {
  return parts_->Read<std::vector<model::Vm>>(
      [&](Db& db) { return ledger::VmsOnHost(db, host, also); });
}

Result<std::vector<model::VmId>> SqliteLedger::InTombstones(std::span<const model::VmId> vms) {
  return parts_->Read<std::vector<model::VmId>>(
      [&](Db& db) { return ledger::InTombstones(db, vms); });
}

Result<std::vector<model::VmId>> SqliteLedger::MovedAway(const model::HostId& host,
                                                         std::span<const model::VmId> vms) {
  if (vms.empty()) return std::vector<model::VmId>();
  return parts_->Read<std::vector<model::VmId>>(
      [&](Db& db) { return ledger::MovedAway(db, host, vms); });
}

Result<int> SqliteLedger::Observe(std::span<const ports::Observation> observations) {
  if (observations.empty()) return 0;
  return parts_->Write<int>([&](Tx& tx) { return ledger::Observe(tx, observations); });
}

Result<std::vector<ports::StraySighting>> SqliteLedger::NoteStrays(
    const model::HostId& host, std::span<const model::VmId> strays) {
  return parts_->Write<std::vector<ports::StraySighting>>(
      [&](Tx& tx) { return ledger::NoteStrays(tx, host, strays); });
}

Status SqliteLedger::MarkQuarantined(const model::HostId& host, const model::VmId& vm) {
  return FoundOr(parts_->Write<bool>([&](Tx& tx) { return ledger::MarkQuarantined(tx, host, vm); }),
                 "sighting");
}

Result<ports::SweepCounts> SqliteLedger::Sweep(const model::RetentionPolicy& policy,
                                               int most_rows) {
  return parts_->Write<ports::SweepCounts>([&](Tx& tx) {
    return ledger::Sweep(tx, {policy, std::max(most_rows, 1), parts_->sweep_cursor});
  });
}

// --- Images

Result<ports::ImageAddition> SqliteLedger::AddImage(const model::StoredImage& image) {
  return parts_->Write<ports::ImageAddition>([&](Tx& tx) { return ledger::AddImage(tx, image); });
}

Result<ports::ImageRemoval> SqliteLedger::RemoveImage(std::string_view name) {
  return parts_->Write<ports::ImageRemoval>([&](Tx& tx) { return ledger::RemoveImage(tx, name); });
}

Result<std::vector<model::StoredImage>> SqliteLedger::StoredImages() {
  return parts_->Read<std::vector<model::StoredImage>>(
      [](Db& db) { return ledger::StoredImages(db); });
}

// Every create from a file asks, and all but the first find it kept.
Result<ports::FileVerdict> SqliteLedger::KeepFile(const std::string& path,
                                                  const FileIdentity& now) {
  const auto kept =
      parts_->Read<std::optional<FileIdentity>>([&](Db& db) { return ledger::KeptFile(db, path); });
  if (!kept) return std::unexpected(kept.error());
  if (*kept == now) return ports::FileVerdict{};
  return parts_->Write<ports::FileVerdict>([&](Tx& tx) { return ledger::KeepFile(tx, path, now); });
}

// The scan of the VMs holds up no writer while some stand on it.
Result<ports::FileVerdict> SqliteLedger::CheckFile(const std::string& path,
                                                   const std::optional<FileIdentity>& now) {
  bool is_to_be_forgotten = false;
  auto verdict = parts_->Read<ports::FileVerdict>([&](Db& db) {
    const std::optional<FileIdentity> kept = ledger::KeptFile(db, path);
    if (!kept || kept == now) return ports::FileVerdict{};
    const ports::FileVerdict seen{ledger::UsersOfFile(db, path, now)};
    is_to_be_forgotten = !seen.is_changed();
    return seen;
  });
  if (!verdict || !is_to_be_forgotten) return verdict;
  return parts_->Write<ports::FileVerdict>(
      [&](Tx& tx) { return ledger::ForgetFile(tx, path, now); });
}

// --- Tokens

Result<std::vector<model::Token>> SqliteLedger::Tokens() {
  return parts_->Read<std::vector<model::Token>>([](Db& db) { return ledger::Tokens(db); });
}

Result<ports::TokenMade> SqliteLedger::CreateToken(const model::Token& token) {
  auto made = parts_->Write<Result<ports::TokenMade>>(
      [&](Tx& tx) { return ledger::CreateToken(tx, token); });
  if (!made) return std::unexpected(std::move(made.error()));
  return std::move(*made);
}

Result<std::optional<model::Token>> SqliteLedger::RevokeToken(const model::TokenId& id) {
  return parts_->Write<std::optional<model::Token>>(
      [&](Tx& tx) { return ledger::RevokeToken(tx, id); });
}

// --- Keys

Result<ports::ReleasedKey> SqliteLedger::ReleaseKey(const model::ProjectId& project,
                                                    const Digest& key_hash, const std::string& by) {
  auto released = parts_->Write<Result<ports::ReleasedKey>>(
      [&](Tx& tx) { return ledger::ReleaseKey(tx, project, key_hash, by); });
  if (!released) return std::unexpected(std::move(released.error()));
  return *std::move(released);
}

// --- Rebuilding

Result<std::vector<model::Operation>> SqliteLedger::Unfinished() {
  return parts_->Read<std::vector<model::Operation>>([](Db& db) { return ledger::Unfinished(db); });
}

Result<std::vector<std::string>> SqliteLedger::Rewrite(const ports::RebuiltOperation& rebuilt) {
  return parts_->Write<std::vector<std::string>>(
      [&](Tx& tx) { return ledger::Rewrite(tx, rebuilt); });
}

Status SqliteLedger::RaiseSequence(std::int64_t newest) {
  return parts_->commit->Run([&](Tx& tx) -> Status {
    tx.counters.RaiseSequence(newest);
    return {};
  });
}

Status SqliteLedger::SetUnread(const model::HostId& host, bool is_unread) {
  return FoundOr(
      parts_->Write<bool>([&](Tx& tx) { return ledger::SetUnread(tx, host, is_unread); }), "host");
}

}  // namespace vmonce::ledger
