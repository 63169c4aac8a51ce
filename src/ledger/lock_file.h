// One ledger file has one serving process: whoever holds "<path>.lock".
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace vmonce::ledger {

// Locks `path` (made when there is none; it stays when the lock is gone) with flock(2) until the
// descriptor is closed or the process ends, in whatever way. kConflict when another process, or
// another ledger of this one, holds it; kUnavailable when the file cannot be opened.
Result<UniqueFd> TakeLockFile(const std::string& path);

}  // namespace vmonce::ledger
