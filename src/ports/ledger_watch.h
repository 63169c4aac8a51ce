// Tells, without asking the ledger, whether what was read of a VM still is what the ledger has. It
// is what lets an answer be given again from memory.
#pragma once

#include <compare>
#include <cstdint>

#include "model/ids.h"

namespace vmonce::ports {

// A point in the order of a ledger's commits.
struct Moment {
  std::uint64_t value = 0;
  auto operator<=>(const Moment&) const = default;
};

// Thread-safe, and quick: from memory.
class LedgerWatch {
 public:
  virtual ~LedgerWatch() = default;

  // To be asked before a read: what is read from here on is of this moment or later.
  virtual Moment Now() const = 0;

  // True: whoever reads the VM's row now finds it as it was read after `since`, and it is there.
  // False: it was written, or removed, or is just being committed; or it is not known. From the
  // commit on that anybody can see, no old row stands. A ledger with other writers than this
  // process answers true only as far as it is told of their writes, and publishes how late that
  // may be.
  virtual bool IsUnchanged(const model::VmId& vm, Moment since) const = 0;
};

}  // namespace vmonce::ports
