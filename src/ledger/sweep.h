// The end of records: they become tombstones, tombstones go, events that nobody took go.
#pragma once

#include "ledger/transaction.h"
#include "model/retention.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

// How far the last sweep came. Records that may end are looked for in the order of their ends; some
// must stay all the same (a batch of which one VM lives), and a sweep that always began with these
// would never come further. In memory only: a lost cursor costs one look more.
struct SweepCursor {
  // A row's end, and its key among rows of the same end.
  struct RowPlace {
    Time end{};
    std::int64_t sequence = 0;
  };
  struct VmPlace {
    Time end{};
    model::VmId vm;
  };
  RowPlace ended_short;  // Operations that live for limits::kKeyTtl.
  RowPlace ended_long;   // Deletes and failed creates.
  VmPlace deleted;       // VMs, for the creates that made them.
};

struct SweepRequest {
  const model::RetentionPolicy& policy;
  int most_rows;        // Of each kind.
  SweepCursor& cursor;  // Moved on; begins anew when its round is over.
};
ports::SweepCounts Sweep(Tx& tx, const SweepRequest& request);

}  // namespace vmonce::ledger
