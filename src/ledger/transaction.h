// What a member of a writing transaction works with.
#pragma once

#include "base/clock.h"
#include "ledger/counters.h"
#include "ledger/sqlite_db.h"

namespace vmonce::ledger {

struct Tx {
  Tx(Db& connection, Time at, Counters& shared) : db(connection), now(at), counters(shared) {}

  Db& db;
  const Time now;      // The ledger's clock, once for the whole member.
  Counters& counters;  // Of all members; written at the transaction's end.
};

}  // namespace vmonce::ledger
