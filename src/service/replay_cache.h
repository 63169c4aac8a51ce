// What never changes about a key that is known: its fingerprint and its operation. It saves a
// replay the ledger's write path; what is live is always read from the ledger. Bounded: the entry
// used longest ago goes first.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/sha256.h"
#include "base/threads.h"
#include "model/ids.h"

namespace vmonce::service {

// Thread-safe.
class ReplayCache {
 public:
  struct Entry {
    Digest fingerprint{};
    model::OperationId operation;
  };

  ReplayCache(Threads& threads, std::size_t most) : monitor_(threads.NewMonitor()), most_(most) {}

  std::optional<Entry> Find(const model::ProjectId& project, const Digest& key_hash);
  void Put(const model::ProjectId& project, const Digest& key_hash, const Entry& entry);
  // The record is gone (it became a tombstone).
  void Forget(const model::ProjectId& project, const Digest& key_hash);

 private:
  struct Key {
    model::ProjectId project;
    Digest hash{};
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  using Row = std::pair<Key, Entry>;

  std::unique_ptr<Monitor> monitor_;
  const std::size_t most_;
  std::list<Row> rows_ GUARDED_BY(*monitor_);  // The last used one first.
  std::unordered_map<Key, std::list<Row>::iterator, KeyHash> index_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::service
