#include "service/known_keys.h"

#include <cstring>
#include <functional>
#include <string_view>

namespace vmonce::service {
namespace {

// Eight bytes of a SHA-256 are a mark that no two keys in use share by chance.
std::uint64_t MarkOf(const model::ProjectId& project, const Digest& key_hash) {
  std::uint64_t mark = 0;
  std::memcpy(&mark, key_hash.data(), sizeof mark);
  return mark ^ std::hash<std::string_view>()(project.value);
}

}  // namespace

bool KnownKeys::Has(const model::ProjectId& project, const Digest& key_hash) const {
  const std::uint64_t mark = MarkOf(project, key_hash);
  return places_[mark % places_.size()].load(std::memory_order_relaxed) == mark;
}

void KnownKeys::Put(const model::ProjectId& project, const Digest& key_hash) {
  const std::uint64_t mark = MarkOf(project, key_hash);
  places_[mark % places_.size()].store(mark, std::memory_order_relaxed);
}

void KnownKeys::Forget(const model::ProjectId& project, const Digest& key_hash) {
  std::uint64_t mark = MarkOf(project, key_hash);
  places_[mark % places_.size()].compare_exchange_strong(mark, 0, std::memory_order_relaxed);
}

}  // namespace vmonce::service
