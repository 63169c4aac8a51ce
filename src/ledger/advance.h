// What workers do with operations: take, renew, record under the fence, make due.
#pragma once

#include <span>
#include <vector>

#include "ledger/transaction.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

struct TakeRequest {
  const model::ReplicaId& owner;
  Milliseconds ttl;
  Milliseconds settle;
  int most;
};
std::vector<model::Operation> TakeDue(Tx& tx, const TakeRequest& request);

// Those that are lost.
std::vector<model::OperationId> Renew(Tx& tx, std::span<const model::Lease> leases,
                                      Milliseconds ttl);

// Everything but kRecorded is to be undone by the caller: part of it may have been written.
ports::AdvanceOutcome Record(Tx& tx, const ports::Advance& advance);

void MakeDue(Tx& tx, const model::OperationId& operation);

// Lines of operations that have expired, or have very many, are dropped.
void AppendTimeline(Tx& tx, std::span<const model::TimelineEntry> entries);

}  // namespace vmonce::ledger
