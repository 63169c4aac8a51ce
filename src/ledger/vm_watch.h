// When the rows of VMs were last written, as the number of the commit that did. Many VMs share a
// place, so that the memory is fixed: one that is written takes the others with it, which costs
// them a read. One process writes a ledger, and all its writes come through here.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "model/work_limits.h"
#include "ports/ledger_watch.h"

namespace vmonce::ledger {

// Now() and IsUnchanged() from any thread, everything else by the user of the writer.
class VmWatch final : public ports::LedgerWatch {
 public:
  ports::Moment Now() const override { return {ended_}; }
  bool IsUnchanged(const model::VmId& vm, ports::Moment since) const override {
    return everything_ <= since.value && places_[PlaceOf(vm)] <= since.value;
  }

  // The commit that comes next writes the VM, or nobody knows which ones. Before anybody can see
  // it.
  void Begins(const model::VmId& vm) { places_[PlaceOf(vm)] = ended_ + 1; }
  void BeginsWithAll() { everything_ = ended_ + 1; }
  // Of the commit, however it ended: what is read from here on is as it stays.
  void Ends() { ++ended_; }

 private:
  static std::size_t PlaceOf(const model::VmId& vm) {
    return UuidHash()(vm) % model::limits::kVmWatchPlaces;
  }

  // A commit that is under way has a number above any moment that was told: what it writes is
  // unchanged for nobody, neither before nor after it shows.
  std::atomic<std::uint64_t> ended_ = 0;
  std::atomic<std::uint64_t> everything_ = 0;
  std::vector<std::atomic<std::uint64_t>> places_ =
      std::vector<std::atomic<std::uint64_t>>(model::limits::kVmWatchPlaces);
};

}  // namespace vmonce::ledger
