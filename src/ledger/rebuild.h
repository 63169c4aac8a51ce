// Rows written anew from what the hosts hold: see ports/ledger_rebuild.h.
#pragma once

#include <string>
#include <vector>

#include "ledger/transaction.h"
#include "ports/ledger_rebuild.h"

namespace vmonce::ledger {

std::vector<model::Operation> Unfinished(Db& db);
std::vector<std::string> Rewrite(Tx& tx, const ports::RebuiltOperation& rebuilt);
// False: no such host.
bool SetUnread(Tx& tx, const model::HostId& host, bool is_unread);

}  // namespace vmonce::ledger
