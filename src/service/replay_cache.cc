#include "service/replay_cache.h"

#include <cstring>

namespace vmonce::service {

std::size_t ReplayCache::KeyHash::operator()(const Key& key) const noexcept {
  // Eight bytes of a SHA-256 are a hash already. One key in two projects shares a bucket, no more.
  std::size_t value = 0;
  std::memcpy(&value, key.hash.data(), sizeof value);
  return value;
}

std::optional<ReplayCache::Entry> ReplayCache::Find(const model::ProjectId& project,
                                                    const Digest& key_hash) {
  MonitorLock lock(*monitor_);
  const auto found = index_.find(Key{project, key_hash});
  if (found == index_.end()) return std::nullopt;
  rows_.splice(rows_.begin(), rows_, found->second);
  return found->second->second;
}

void ReplayCache::Put(const model::ProjectId& project, const Digest& key_hash, const Entry& entry) {
  MonitorLock lock(*monitor_);
  Key key{project, key_hash};
  if (const auto found = index_.find(key); found != index_.end()) {
    found->second->second = entry;
    rows_.splice(rows_.begin(), rows_, found->second);
    return;
  }
  rows_.emplace_front(key, entry);
  index_.emplace(std::move(key), rows_.begin());
  if (rows_.size() <= most_) return;
  index_.erase(rows_.back().first);
  rows_.pop_back();
}

void ReplayCache::Forget(const model::ProjectId& project, const Digest& key_hash) {
  MonitorLock lock(*monitor_);
  const auto found = index_.find(Key{project, key_hash});
  if (found == index_.end()) return;
  rows_.erase(found->second);
  index_.erase(found);
}

}  // namespace vmonce::service
