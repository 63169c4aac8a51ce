#include "ledger/image_files.h"

namespace vmonce::ledger {

std::optional<FileIdentity> KeptFile(Db& db, const std::string& path) {
  Query query = db.Prepare("SELECT bytes, modified_ns, inode FROM image_files WHERE path = ?1");
  if (!query.Bind(path).Next()) return std::nullopt;
  FileIdentity kept;
  kept.bytes = query.Int();
  kept.modified_ns = query.Int();
  kept.inode = query.Int();
  return kept;
}

// A VM that waits for its host, or that failed and was undone, has no disk.
std::int64_t UsersOfFile(Db& db, const std::string& path, const std::optional<FileIdentity>& now) {
  Query query = db.Prepare(
      "SELECT count(*) FROM vms WHERE deleted_ms IS NULL AND created_ms < ?2 "
      "AND state <> 'pending' AND NOT (state = 'failed' AND host IS NULL) "
      "AND json_extract(spec, '$.image.disk_path') = ?1");
  return query.Bind(path, now ? now->since : Time::max()).Next() ? query.Int() : 0;
}

ports::FileVerdict KeepFile(Tx& tx, const std::string& path, const FileIdentity& now) {
  const std::optional<FileIdentity> kept = KeptFile(tx.db, path);
  if (kept == now) return {};
  if (kept) {
    const ports::FileVerdict verdict{UsersOfFile(tx.db, path, now)};
    if (verdict.is_changed()) return verdict;
  }
  tx.db.Run(
      "INSERT OR REPLACE INTO image_files (path, bytes, modified_ns, inode, kept_ms) "
      "VALUES (?1, ?2, ?3, ?4, ?5)",
      path, now.bytes, now.modified_ns, now.inode, tx.now);
  return {};
}

ports::FileVerdict ForgetFile(Tx& tx, const std::string& path,
                              const std::optional<FileIdentity>& now) {
  const std::optional<FileIdentity> kept = KeptFile(tx.db, path);
  if (!kept || kept == now) return {};
  const ports::FileVerdict verdict{UsersOfFile(tx.db, path, now)};
  if (!verdict.is_changed()) tx.db.Run("DELETE FROM image_files WHERE path = ?1", path);
  return verdict;
}

}  // namespace vmonce::ledger
