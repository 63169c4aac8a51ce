// What is used and how much is unfinished, kept as counters in the tables `usage` and `totals`, so
// that a claim never counts rows. Read at the first need in a transaction and written once at its
// end, so that all its members share one write.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ledger/sqlite_db.h"
#include "model/host.h"
#include "model/operation.h"

namespace vmonce::ledger {

class Counters {
 public:
  explicit Counters(Db& db) : db_(db) {}

  const model::Resources& UsedBy(const model::ProjectId& project) { return Row(project).used; }
  const model::Resources& UsedByAll() { return Load().used; }
  std::int64_t Unfinished() { return Load().unfinished; }
  // Grows with every call, and is never used twice.
  std::int64_t NextSequence();
  // What it answers next is above `newest`.
  void RaiseSequence(std::int64_t newest);

  void Reserve(const model::ProjectId& project, const model::Resources& demand);
  void Release(const model::ProjectId& project, const model::Resources& demand);
  // `by` operations more (or less) are in that state.
  void Count(model::OperationState state, int by);
  // One operation goes from one state to another.
  void Move(model::OperationState from, model::OperationState to);

  // Records of the project that have a key.
  std::int64_t LiveKeys(const model::ProjectId& project) { return Row(project).live_keys; }
  void CountKeys(const model::ProjectId& project, int by);

  void Write();

  // Grows with every change.
  std::int64_t Changes() const { return changes_; }

 private:
  struct Usage {
    model::Resources used;
    std::int64_t live_keys = 0;
    bool is_changed = false;
  };
  struct Totals {
    model::Resources used;
    std::int64_t unfinished = 0;
    std::int64_t succeeded = 0;
    std::int64_t failed = 0;
    std::int64_t cancelled = 0;
    std::int64_t last_sequence = 0;
  };
  Usage& Row(const model::ProjectId& project);
  Totals& Load();

  Db& db_;
  Totals totals_;
  bool is_loaded_ = false;
  bool is_changed_ = false;
  std::int64_t changes_ = 0;
  std::map<model::ProjectId, Usage> projects_;
};

}  // namespace vmonce::ledger
