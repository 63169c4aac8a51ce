#include "ledger/migrate.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <utility>

#include "base/check.h"

namespace vmonce::ledger {
namespace {

Status ErrorOf(Db& db) {
  if (auto error = db.TakeError()) return std::unexpected(std::move(*error));
  return {};
}

int ReadPragma(Db& db, std::string_view sql) {
  Query query = db.Prepare(sql);
  return query.Next() ? query.SmallInt() : 0;
}

bool IsEmpty(Db& db) {
  Query query = db.Prepare("SELECT count(*) FROM sqlite_schema");
  return query.Next() && query.Int() == 0;
}

// Through SQLite's backup, since what is still in the write-ahead log belongs to the copy too.
Status CopyTo(Db& db, const std::string& target) {
  const std::string unfinished = target + ".tmp";
  std::remove(unfinished.c_str());
  {
    auto copy = Db::Open(unfinished, OpenMode::kReadWrite);
    if (!copy) return std::unexpected(copy.error());
    sqlite3_backup* backup = sqlite3_backup_init((*copy)->Raw(), "main", db.Raw(), "main");
    if (backup != nullptr) sqlite3_backup_step(backup, -1);
    const int code =
        backup == nullptr ? sqlite3_errcode((*copy)->Raw()) : sqlite3_backup_finish(backup);
    if (code != SQLITE_OK) {
      return Fail(CodeOf(code), fmt::format("cannot copy the ledger to {}: {}", unfinished,
                                            sqlite3_errstr(code)));
    }
  }
  if (std::rename(unfinished.c_str(), target.c_str()) != 0) {
    return Fail(ErrorCode::kUnavailable, fmt::format("cannot rename {} to {}", unfinished, target));
  }
  return {};
}

std::string NewLedgerId(Random& random) {
  std::array<std::uint8_t, 6> bytes{};
  random.Fill(std::as_writable_bytes(std::span(bytes)));
  return ToHex(bytes);
}

Status RunOne(Db& db, const Migration& migration, Random& random) {
  db.Run("BEGIN IMMEDIATE");
  db.RunScript(std::string(migration.sql));
  if (migration.number == 1) {
    db.Run("INSERT INTO meta (name, value) VALUES ('ledger_id', ?1)", NewLedgerId(random));
    db.RunScript(fmt::format("PRAGMA application_id = {}", kApplicationId));
  }
  db.RunScript(fmt::format("PRAGMA user_version = {}", migration.number));
  db.Run("COMMIT");
  Status done = ErrorOf(db);
  if (!done) {
    if (!db.IsAutocommit()) db.Run("ROLLBACK");
    db.TakeError();
    return Context(fmt::format("migration {}", migration.name), done.error());
  }
  return {};
}

}  // namespace

Result<int> CheckSchema(Db& db, const std::string& path, std::span<const Migration> migrations) {
  CHECK(!migrations.empty());
  const int newest = migrations.back().number;
  const int application = ReadPragma(db, "PRAGMA application_id");
  const int version = ReadPragma(db, "PRAGMA user_version");
  const bool is_empty = IsEmpty(db);
  if (Status read = ErrorOf(db); !read) {
    return Fail(
        read.error().code == ErrorCode::kInternal ? ErrorCode::kConflict : read.error().code,
        fmt::format("{} cannot be read as a ledger: {}", path, read.error().detail));
  }
  if (!is_empty && application != kApplicationId) {
    return Fail(ErrorCode::kConflict,
                fmt::format("{} is an SQLite file, but no ledger of this program", path));
  }
  if (version > newest) {
    return Fail(ErrorCode::kConflict,
                fmt::format("{} was written by a newer version of this program (schema {}; this "
                            "one knows up to {}): run that version, or restore the copy it made "
                            "before it changed the file",
                            path, version, newest));
  }
  return version;
}

Status Migrate(Db& db, const std::string& path, std::span<const Migration> migrations,
               Random& random, Logger& logger) {
  const Result<int> checked = CheckSchema(db, path, migrations);
  if (!checked) return std::unexpected(checked.error());
  const int version = *checked;
  if (version == migrations.back().number) return {};
  if (version > 0 && !path.empty()) {
    const std::string copy = fmt::format("{}.before-{:04}", path, version + 1);
    if (Status copied = CopyTo(db, copy); !copied) return copied;
    logger.Info("ledger_copied", {{"copy", copy}, {"schema", version}});
  }
  for (const Migration& migration : migrations) {
    if (migration.number <= version) continue;
    if (Status done = RunOne(db, migration, random); !done) return done;
    logger.Info("ledger_migrated", {{"migration", migration.name}});
  }
  return {};
}

}  // namespace vmonce::ledger
