// The rows of VMs that were written last, as the ledger has them: workers read them before every
// step, and the writer before every record. Only the writer puts rows in, after its commit; nothing
// that was read ever goes in, so that an old row cannot come back. One process writes a ledger.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/threads.h"
#include "ledger/vm_watch.h"
#include "model/vm.h"

namespace vmonce::ledger {

// Find() from any thread, everything else by the user of the writer.
class HotVms {
 public:
  HotVms(Threads& threads, std::size_t most) : most_(most), monitor_(threads.NewMonitor()) {}

  // As committed. Absent: not known here; the row tells.
  std::optional<model::Vm> Find(const model::VmId& id) const;

  // As the writer's transaction has it now. Absent: the row tells.
  std::optional<model::Vm> FindInTransaction(const model::VmId& id) const;
  // The transaction has written this row.
  void Wrote(const model::Vm& vm);
  // The transaction has written rows, and which or how is not known here.
  void WroteOthers() { wrote_others_ = true; }

  // Forgets what the transaction has written: from here on until Committed() readers see the rows
  // alone, and never a new row before an old one.
  void BeforeCommit();
  void Committed();
  void Undone();
  // After doubt about a commit.
  void Forget();

  // Is told of the same writes.
  const VmWatch& watch() const { return watch_; }

 private:
  using Rows = std::unordered_map<model::VmId, std::shared_ptr<const model::Vm>, UuidHash>;

  const std::size_t most_;
  const std::unique_ptr<Monitor> monitor_;
  // Shared with those that copy one.
  Rows rows_ GUARDED_BY(*monitor_);
  // The writer's.
  Rows written_;
  bool wrote_others_ = false;
  VmWatch watch_;
};

}  // namespace vmonce::ledger
