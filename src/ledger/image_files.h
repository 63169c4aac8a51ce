// The rows of files that overlays stand on. docs/ledger.md tells the table.
#pragma once

#include <optional>
#include <string>

#include "base/file_identity.h"
#include "ledger/transaction.h"
#include "ports/image_registry.h"

namespace vmonce::ledger {

// Absent: no overlay was made over it since it was last forgotten.
std::optional<FileIdentity> KeptFile(Db& db, const std::string& path);
// As ports::FileVerdict counts them. A scan of all VMs: asked only about a file that changed.
std::int64_t UsersOfFile(Db& db, const std::string& path, const std::optional<FileIdentity>& now);

// Precondition for both, as of a moment ago: `now` is not what is kept.
ports::FileVerdict KeepFile(Tx& tx, const std::string& path, const FileIdentity& now);
ports::FileVerdict ForgetFile(Tx& tx, const std::string& path,
                              const std::optional<FileIdentity>& now);

}  // namespace vmonce::ledger
