// Keys that have a record in the ledger, as far as this process remembers: such a request is looked
// up first, which saves it the claim's way. Only a hint: a key that was forgotten is found by its
// claim, and one that is taken for known by mistake is looked up in vain.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sha256.h"
#include "model/ids.h"
#include "model/limits.h"

namespace vmonce::service {

// Thread-safe. Keys share a few places; a later one may take an earlier one's.
class KnownKeys {
 public:
  // `places` is rounded up to what keys share.
  explicit KnownKeys(std::size_t places = model::limits::kReplayCacheEntries);

  bool Has(const model::ProjectId& project, const Digest& key_hash) const;
  void Put(const model::ProjectId& project, const Digest& key_hash);
  // The record is gone (it became a tombstone).
  void Forget(const model::ProjectId& project, const Digest& key_hash);

 private:
  using Place = std::atomic<std::uint64_t>;
  std::size_t FirstPlace(std::uint64_t mark) const;
  std::span<const Place> PlacesOf(std::uint64_t mark) const;
  std::span<Place> PlacesOf(std::uint64_t mark);

  std::vector<Place> places_;
};

}  // namespace vmonce::service
