#include "ledger/inspect.h"

#include <fmt/format.h>

#include <filesystem>

#include "ledger/migrate.h"

namespace vmonce::ledger {

Result<LedgerFile> InspectLedger(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed) && !failed) {
    return Fail(ErrorCode::kNotFound, path + " does not exist yet");
  }
  auto db = Db::Open(path, OpenMode::kReadOnly);
  if (!db) return std::unexpected(db.error());
  const auto read = CheckSchema(**db, path, EmbeddedMigrations());
  if (!read) return std::unexpected(read.error());
  return LedgerFile{.schema = *read, .newest = EmbeddedMigrations().back().number};
}

}  // namespace vmonce::ledger
