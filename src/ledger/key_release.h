// A key taken off its record: ports/ledger_keys.h, inside a transaction.
#pragma once

#include <string>

#include "ledger/transaction.h"
#include "ports/ledger_keys.h"

namespace vmonce::ledger {

Result<ports::ReleasedKey> ReleaseKey(Tx& tx, const model::ProjectId& project,
                                      const Digest& key_hash, const std::string& by);

}  // namespace vmonce::ledger
