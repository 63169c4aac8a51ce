// How long a key lives (protocol section 7). Times are the ledger's.
#pragma once

#include <optional>
#include <span>

#include "base/clock.h"
#include "model/limits.h"
#include "model/operation.h"
#include "model/vm.h"

namespace vmonce::model {

struct RetentionPolicy {
  std::chrono::hours retention = limits::kRetention;
  std::chrono::hours tombstone_retention = limits::kTombstoneRetention;
  std::chrono::hours key_ttl = limits::kKeyTtl;
  std::chrono::hours outbox_retention = limits::kOutboxRetention;

  bool operator==(const RetentionPolicy&) const = default;
};

// When the last of a create's VMs was gone; std::nullopt while one lives. A failed VM without a
// reservation has no machine: it is gone since it failed, but not while it is being deleted.
// `vms` are the operation's, or what is left of them.
std::optional<Time> LastGone(const Operation& operation, std::span<const Vm> vms);

// When the record becomes a tombstone. std::nullopt: not as things stand (unfinished, or a VM that
// it created lives). `last_gone` is LastGone()'s. A create lives `retention` longer than its VMs, a
// delete `retention` longer than its own end; all others have no resource of their own and live
// `key_ttl`. Precondition: a finished operation has its time of end.
std::optional<Time> RecordExpiry(const Operation& operation, std::optional<Time> last_gone,
                                 const RetentionPolicy& policy);

}  // namespace vmonce::model
