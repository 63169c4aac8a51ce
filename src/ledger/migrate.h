// Brings a ledger file to the schema this program knows: the numbered files of schema/sqlite, each
// run once, in order. PRAGMA user_version holds the number of the last one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/random.h"
#include "base/result.h"
#include "ledger/sqlite_db.h"

namespace vmonce::ledger {

struct Migration {
  int number;  // Growing.
  std::string_view name;
  std::string_view sql;
};

// schema/sqlite, embedded at build time.
std::span<const Migration> EmbeddedMigrations();

// PRAGMA application_id of our files: "vmon".
inline constexpr int kApplicationId = 0x766d6f6e;

// The schema of a file, 0 for an empty one; kConflict as Migrate() says. Writes nothing.
Result<int> CheckSchema(Db& db, const std::string& path, std::span<const Migration> migrations);

// `db` is connected to `path` (empty: in memory) and nobody else uses the file. A new file gets the
// schema and an id. An older one is copied to "<path>.before-NNNN" (NNNN is the first migration
// that will run) and then brought up to date, one transaction per migration. kConflict: the file is
// of a newer version, or no ledger; nothing was written. Another error: the file is at the version
// before the migration that failed.
Status Migrate(Db& db, const std::string& path, std::span<const Migration> migrations,
               Random& random, Logger& logger);

}  // namespace vmonce::ledger
