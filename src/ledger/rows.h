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

// What a record under a lease asks of the row: a fraction of it, and of its columns.
struct HeldOperation {
  std::int64_t sequence = 0;
  model::OperationState state = model::OperationState::kAccepted;
  std::string lease_owner;
  model::Fence fence;
  bool is_finished = false;
  std::vector<model::VmId> vms;
};
std::optional<HeldOperation> FindHeldOperation(Db& db, const model::OperationId& id);

// Writes fence, lease, items and time.
void UpdateLease(Db& db, const model::Operation& operation);

struct OperationProgress {
  std::int64_t sequence = 0;
  model::OperationState state = model::OperationState::kRunning;
  const std::vector<model::Item>& items;
  const std::optional<model::Failure>& failure;
  bool is_stuck = false;
  bool drop_secrets = false;
  Time now;
  std::optional<Time> due;  // Set: the lease is given back. Always so when `state` is finished.
};
void UpdateProgress(Db& db, const OperationProgress& progress);

std::optional<model::Vm> FindVm(Db& db, const model::VmId& id);
// Those that exist, in this order.
std::vector<model::Vm> FindVms(Db& db, std::span<const model::VmId> ids);
extern const std::string_view kVmColumns;
model::Vm ReadVm(Db& db, Query& query);

void InsertVm(Db& db, const model::Vm& vm);
// Writes everything that may change after acceptance.
void UpdateVm(Db& db, const model::Vm& vm);
// The same, when the row is known to be `before`.
void UpdateVm(Db& db, const model::Vm& before, const model::Vm& vm);

std::optional<model::Tombstone> FindTombstone(Db& db, const model::ProjectId& project,
                                              const Digest& key_hash);

void InsertEvents(Db& db, std::span<const model::Event> events, Time now);
// Adds lines to the story of the operation with that sequence number. A line without a time of its
// own is of `now`.
void InsertTimeline(Db& db, std::int64_t sequence, std::span<const model::TimelineEntry> entries,
                    Time now);
// The same, where it is known how many lines there are.
struct TimelineEnd {
  std::int64_t sequence = 0;
  std::int64_t last = 0;
};
void InsertTimeline(Db& db, const TimelineEnd& end, std::span<const model::TimelineEntry> entries,
                    Time now);
inline void InsertTimeline(Db& db, std::int64_t sequence, const model::TimelineEntry& entry,
                           Time now) {
  InsertTimeline(db, sequence, std::span(&entry, 1), now);
}

// Ids side by side, 16 bytes each.
std::string JoinIds(std::span<const model::VmId> ids);
std::vector<model::VmId> SplitIds(std::string_view joined);

}  // namespace vmonce::ledger
