// Keys that have a record in the ledger, as far as this process remembers: such a request is looked
// up first, which saves it the claim's way. Only a hint: a key that was forgotten is found by its
// claim, and one that is taken for known by mistake is looked up in vain.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/sha256.h"
#include "model/ids.h"
#include "model/limits.h"

namespace vmonce::service {

// Thread-safe. Of two keys that share a place, the later one stays.
class KnownKeys {
 public:
  // Precondition: there is a place.
  explicit KnownKeys(std::size_t places = model::limits::kReplayCacheEntries) : places_(places) {}

  bool Has(const model::ProjectId& project, const Digest& key_hash) const;
  void Put(const model::ProjectId& project, const Digest& key_hash);
  // The record is gone (it became a tombstone).
  void Forget(const model::ProjectId& project, const Digest& key_hash);

 private:
  std::vector<std::atomic<std::uint64_t>> places_;
};

}  // namespace vmonce::service
