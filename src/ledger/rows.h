// Between rows and the model's values: the only place that knows the columns of operations and vms.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ledger/sqlite_db.h"
#include "model/operation.h"
#include "model/vm.h"

namespace vmonce::ledger {

// A row of operations: the value, and what the value does not hold.
struct OperationRow {
  model::Operation operation;
  std::vector<model::VmId> vms;  // Those it made, or the one it acts on.
  std::string accepted_by;       // The replica it was leased to at acceptance; empty when to none.
  std::optional<model::TokenId> token;  // With which it was asked for.
};

std::optional<OperationRow> FindOperation(Db& db, const model::OperationId& id);
std::optional<OperationRow> FindOperationByKey(Db& db, const model::ProjectId& project,
                                               const Digest& key_hash);
// The columns that ReadOperation expects, for queries built elsewhere.
extern const std::string_view kOperationColumns;
OperationRow ReadOperation(Db& db, Query& query);

void InsertOperation(Db& db, const OperationRow& row);
// Writes everything that may change after acceptance.
void UpdateOperation(Db& db, const model::Operation& operation);

std::optional<model::Vm> FindVm(Db& db, const model::VmId& id);
// Those that exist, in this order.
std::vector<model::Vm> FindVms(Db& db, std::span<const model::VmId> ids);
extern const std::string_view kVmColumns;
model::Vm ReadVm(Db& db, Query& query);

void InsertVm(Db& db, const model::Vm& vm);
// Writes everything that may change after acceptance.
void UpdateVm(Db& db, const model::Vm& vm);

std::optional<model::Tombstone> FindTombstone(Db& db, const model::ProjectId& project,
                                              const Digest& key_hash);

void InsertEvents(Db& db, std::span<const model::Event> events, Time now);
// Adds a line to the story of the operation with that sequence number.
void InsertTimeline(Db& db, std::int64_t sequence, const model::TimelineEntry& entry, Time now);

// Ids side by side, 16 bytes each.
std::string JoinIds(std::span<const model::VmId> ids);
std::vector<model::VmId> SplitIds(std::string_view joined);

}  // namespace vmonce::ledger
