// All rows of one database for those of another.
#pragma once

#include "ledger/sqlite_db.h"

namespace vmonce::ledger {

// Within a transaction of `to`: its tables hold what those of `from` do. Both have the same schema.
// Compiled statements stay as they are. Errors stick to the connection on which they happened.
void CopyRows(Db& from, Db& to);

}  // namespace vmonce::ledger
