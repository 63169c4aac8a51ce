// How long a key lives (protocol section 7). Times are the ledger's.
#pragma once

#include <optional>

#include "base/clock.h"
#include "model/limits.h"
#include "model/operation.h"

namespace vmonce::model {

struct RetentionPolicy {
  std::chrono::hours retention = limits::kRetention;
  std::chrono::hours tombstone_retention = limits::kTombstoneRetention;
  std::chrono::hours key_ttl = limits::kKeyTtl;
  std::chrono::hours outbox_retention = limits::kOutboxRetention;
};

// When the record becomes a tombstone. std::nullopt: not as things stand (unfinished, or a VM of it
// lives). `last_gone` is when the last of its VMs was deleted, or absent while one still lives.
std::optional<Time> RecordExpiry(const Operation& operation, std::optional<Time> last_gone,
                                 const RetentionPolicy& policy);

}  // namespace vmonce::model
