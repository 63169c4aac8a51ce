#include "ledger/hot_vms.h"

namespace vmonce::ledger {

std::optional<model::Vm> HotVms::Find(const model::VmId& id) const {
  std::shared_ptr<const model::Vm> row;
  {
    MonitorLock lock(*monitor_);
    const auto found = rows_.find(id);
    if (found == rows_.end()) return std::nullopt;
    row = found->second;
  }
  return *row;
}

std::optional<model::Vm> HotVms::FindInTransaction(const model::VmId& id) const {
  if (wrote_others_) return std::nullopt;
  if (const auto found = written_.find(id); found != written_.end()) return *found->second;
  return Find(id);
}

void HotVms::Wrote(const model::Vm& vm) { written_[vm.id] = std::make_shared<model::Vm>(vm); }

void HotVms::BeforeCommit() {
  for (const auto& [id, row] : written_) watch_.Begins(id);
  if (wrote_others_) watch_.BeginsWithAll();
  MonitorLock lock(*monitor_);
  if (wrote_others_) rows_.clear();
  for (const auto& [id, row] : written_) rows_.erase(id);
}

void HotVms::Committed() {
  watch_.Ends();
  if (wrote_others_) {
    Undone();
    return;
  }
  MonitorLock lock(*monitor_);
  // Those in use come back with their next record.
  if (rows_.size() + written_.size() > most_) rows_.clear();
  if (written_.size() <= most_) rows_.merge(written_);
  written_.clear();
}

void HotVms::Undone() {
  written_.clear();
  wrote_others_ = false;
}

void HotVms::Forget() {
  watch_.BeginsWithAll();
  watch_.Ends();
  Undone();
  MonitorLock lock(*monitor_);
  rows_.clear();
}

}  // namespace vmonce::ledger
