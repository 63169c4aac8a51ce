#include "ledger/connections.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "model/limits.h"
#include "model/work_limits.h"

namespace vmonce::ledger {
namespace {

namespace limits = model::limits;

Status ErrorOf(Db& db) {
  if (auto error = db.TakeError()) return std::unexpected(std::move(*error));
  return {};
}

Status SetUpWriter(Db& db, const ConnectionOptions& options) {
  sqlite3_busy_timeout(db.Raw(), static_cast<int>(limits::kLedgerBusy.count()));
  db.RunScript(
      fmt::format("PRAGMA cache_size = -{}; PRAGMA temp_store = MEMORY; "
                  "PRAGMA secure_delete = OFF; PRAGMA synchronous = FULL;",
                  options.page_cache_kib));
  if (options.max_pages > 0) {
    // Gives the new bound as a row, so it is no Run().
    db.RunScript(fmt::format("PRAGMA max_page_count = {}", options.max_pages));
  }
  if (options.path.empty()) return ErrorOf(db);
  std::string mode;
  {
    Query query = db.Prepare("PRAGMA journal_mode = WAL");
    if (query.Next()) mode = query.Text();
  }
  if (Status set = ErrorOf(db); !set) return set;
  if (mode != "wal") {
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("{}: the file system does not allow SQLite's write-ahead log", options.path));
  }
  return {};
}

}  // namespace

Connections::Connections(ConnectionOptions options, std::unique_ptr<Db> writer, Threads& threads,
                         Logger& logger)
    : options_(std::move(options)),
      threads_(threads),
      logger_(logger),
      hot_vms_(threads, limits::kHotVms),
      writer_(std::move(writer)),
      monitor_(threads.NewMonitor()) {}

Connections::~Connections() {
  {
    MonitorLock lock(*monitor_);
    is_stopping_ = true;
  }
  monitor_->NotifyAll();
  checkpoint_thread_.reset();
}

Status Connections::Start() {
  if (Status set = SetUpWriter(*writer_, options_); !set) return set;
  writer_->Tell(&hot_vms_);
  if (options_.path.empty() || !options_.has_checkpoint_thread) return {};
  sqlite3_wal_hook(writer_->Raw(), &Connections::NoteLogSize, this);
  checkpoint_thread_ =
      threads_.Spawn("checkpoint", [this](std::stop_token) { CheckpointUntilStopped(); });
  return {};
}

Status Connections::Read(const std::function<void(Db&)>& work) {
  CHECK(HasReaders());
  auto reader = TakeReader();
  if (!reader) return std::unexpected(reader.error());
  Db& db = **reader;
  db.Run("BEGIN");
  work(db);
  Status done = ErrorOf(db);
  if (!db.IsAutocommit()) db.Run("COMMIT");
  const bool is_usable = done.has_value() && !db.TakeError().has_value() && db.IsAutocommit();
  GiveBack(is_usable ? std::move(*reader) : nullptr);
  return done;
}

Result<std::unique_ptr<Db>> Connections::OpenReader() {
  auto reader = Db::Open(options_.path, OpenMode::kReadOnly);
  if (!reader) return reader;
  sqlite3_busy_timeout((*reader)->Raw(), static_cast<int>(limits::kLedgerBusy.count()));
  (*reader)->RunScript(fmt::format("PRAGMA cache_size = -{}; PRAGMA temp_store = MEMORY;",
                                   options_.page_cache_kib / limits::kReaderCacheShare));
  if (Status set = ErrorOf(**reader); !set) return std::unexpected(set.error());
  return reader;
}

Result<std::unique_ptr<Db>> Connections::TakeReader() {
  {
    MonitorLock lock(*monitor_);
    ++waiting_;
    while (!is_broken_ && (is_closing_ || out_ >= options_.readers)) monitor_->Wait();
    --waiting_;
    if (is_broken_) {
      return Fail(ErrorCode::kUnavailable,
                  "a commit failed and the file cannot be opened anew: is its disk full?");
    }
    ++out_;
    if (!idle_.empty()) {
      auto reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
  }
  auto reader = OpenReader();
  if (!reader) GiveBack(nullptr);
  return reader;
}

void Connections::GiveBack(std::unique_ptr<Db> reader) {
  bool is_awaited = false;
  {
    MonitorLock lock(*monitor_);
    --out_;
    if (reader) idle_.push_back(std::move(reader));
    is_awaited = waiting_ > 0;
  }
  // The checkpoint thread waits on the same condition: waking one might wake the wrong one.
  if (is_awaited) monitor_->NotifyAll();
}

Result<Db*> Connections::Writer() {
  if (!is_distrusted_) return writer_.get();
  CloseAll();
  const Status opened = OpenWriterAnew();
  {
    MonitorLock lock(*monitor_);
    is_broken_ = !opened;
    is_closing_ = !opened;
    log_pages_ = checkpointed_pages_ = 0;
  }
  // Those who wait are served, or told that they cannot be.
  monitor_->NotifyAll();
  if (!opened) return std::unexpected(opened.error());
  is_distrusted_ = false;
  logger_.Warning("ledger_reopened", {{"path", options_.path}});
  return writer_.get();
}

Status Connections::OpenWriterAnew() {
  auto writer = Db::Open(options_.path, OpenMode::kReadWrite);
  if (!writer) return std::unexpected(writer.error());
  if (Status set = SetUpWriter(**writer, options_); !set) return set;
  writer_ = std::move(*writer);
  writer_->Tell(&hot_vms_);
  if (checkpoint_thread_) sqlite3_wal_hook(writer_->Raw(), &Connections::NoteLogSize, this);
  return {};
}

bool Connections::IsBroken() const {
  MonitorLock lock(*monitor_);
  return is_broken_;
}

void Connections::Distrust() {
  // A database in memory cannot be opened anew, and its COMMIT writes nothing that could fail.
  CHECK_MSG(!options_.path.empty(), "an error at COMMIT in memory");
  is_distrusted_ = true;
  // Readers stay out from now on, also while opening the writer anew fails.
  MonitorLock lock(*monitor_);
  is_closing_ = true;
}

void Connections::CloseAll() {
  {
    MonitorLock lock(*monitor_);
    ++waiting_;
    while (out_ > 0) monitor_->Wait();
    --waiting_;
    idle_.clear();
    checkpointer_.reset();
  }
  // What was read while the commit was in doubt need not be what the file says.
  hot_vms_.Forget();
  writer_.reset();
}

int Connections::NoteLogSize(void* self, sqlite3*, const char*, int pages) {
  auto& connections = *static_cast<Connections*>(self);
  bool is_due = false;
  {
    MonitorLock lock(*connections.monitor_);
    // The log was begun anew.
    if (pages < connections.log_pages_) connections.checkpointed_pages_ = 0;
    connections.log_pages_ = pages;
    is_due = pages - connections.checkpointed_pages_ >= limits::kCheckpointPages;
  }
  if (is_due) connections.monitor_->NotifyAll();
  return SQLITE_OK;
}

void Connections::CheckpointUntilStopped() {
  while (true) {
    {
      MonitorLock lock(*monitor_);
      while (!is_stopping_ &&
             (is_closing_ || log_pages_ - checkpointed_pages_ < limits::kCheckpointPages)) {
        monitor_->Wait();
      }
      if (is_stopping_) return;
      ++out_;
    }
    CheckpointOnce();
    GiveBack(nullptr);
  }
}

void Connections::CheckpointOnce() {
  if (!checkpointer_) {
    if (auto opened = Db::Open(options_.path, OpenMode::kReadWrite)) {
      checkpointer_ = std::move(*opened);
    }
  }
  int pages = 0;
  int moved = 0;
  int code = SQLITE_CANTOPEN;
  if (checkpointer_) {
    code = sqlite3_wal_checkpoint_v2(checkpointer_->Raw(), nullptr, SQLITE_CHECKPOINT_PASSIVE,
                                     &pages, &moved);
  }
  if (code != SQLITE_OK && code != SQLITE_BUSY) {
    logger_.Warning("checkpoint_failed", {{"sqlite_code", code}});
  }
  MonitorLock lock(*monitor_);
  // What could not be moved (a reader still needs it, or an error) is tried again only when the log
  // has grown by as much again.
  checkpointed_pages_ = log_pages_;
}

void Connections::KeepLogShort() {
  if (!checkpoint_thread_ || is_distrusted_) return;
  {
    MonitorLock lock(*monitor_);
    if (log_pages_ < limits::kWalPages) return;
  }
  // Under steady load the checkpoint thread never catches up with the end of the log, and only a
  // log that was moved as a whole is begun anew. Here the writer stands still.
  sqlite3_wal_checkpoint_v2(writer_->Raw(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

}  // namespace vmonce::ledger
