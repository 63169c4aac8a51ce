// Step 8 of the gate: claims. Each member reads, decides, and only then writes, so that a refusal
// has nothing to undo: nobody else writes during the transaction.
#pragma once

#include <span>
#include <vector>

#include "ledger/transaction.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

// The outcome of each, in order; a member sees what those before it wrote.
std::vector<ports::AcceptOutcome> AcceptAll(Tx& tx, std::span<const ports::Submission> batch);

struct ReviveRequest {
  const model::OperationId& operation;
  int expected_attempt;
  const model::Resources& quota;
  const model::Resources& capacity;
};
ports::AcceptOutcome Revive(Tx& tx, const ReviveRequest& request);

}  // namespace vmonce::ledger
