#include "service/known_keys.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/check.h"

namespace vmonce::service {
namespace {

// What a processor reads at once. With one place for each key, of some thousand keys many would
// share one, and one of each two be unknown whenever the other was seen last.
constexpr std::size_t kShared = 8;

// Eight bytes of a SHA-256 are a mark that no two keys in use share by chance.
std::uint64_t MarkOf(const model::ProjectId& project, const Digest& key_hash) {
  std::uint64_t mark = 0;
  std::memcpy(&mark, key_hash.data(), sizeof mark);
  return mark ^ std::hash<std::string_view>()(project.value);
}

}  // namespace

KnownKeys::KnownKeys(std::size_t places) : places_((places + kShared - 1) / kShared * kShared) {
  CHECK(places > 0);
}

std::size_t KnownKeys::FirstPlace(std::uint64_t mark) const {
  return mark % (places_.size() / kShared) * kShared;
}

std::span<const KnownKeys::Place> KnownKeys::PlacesOf(std::uint64_t mark) const {
  return std::span(places_).subspan(FirstPlace(mark), kShared);
}

std::span<KnownKeys::Place> KnownKeys::PlacesOf(std::uint64_t mark) {
  return std::span(places_).subspan(FirstPlace(mark), kShared);
}

bool KnownKeys::Has(const model::ProjectId& project, const Digest& key_hash) const {
  const std::uint64_t mark = MarkOf(project, key_hash);
  return std::ranges::any_of(PlacesOf(mark), [mark](const Place& place) {
    return place.load(std::memory_order_relaxed) == mark;
  });
}

void KnownKeys::Put(const model::ProjectId& project, const Digest& key_hash) {
  const std::uint64_t mark = MarkOf(project, key_hash);
  const std::span<Place> places = PlacesOf(mark);
  // Any of them, when all are taken.
  Place* chosen = &places[mark / places_.size() % kShared];
  for (Place& place : places) {
    const std::uint64_t held = place.load(std::memory_order_relaxed);
    if (held == mark) return;
    if (held == 0) chosen = &place;
  }
  chosen->store(mark, std::memory_order_relaxed);
}

void KnownKeys::Forget(const model::ProjectId& project, const Digest& key_hash) {
  const std::uint64_t mark = MarkOf(project, key_hash);
  for (Place& place : PlacesOf(mark)) {
    std::uint64_t held = mark;
    place.compare_exchange_strong(held, 0, std::memory_order_relaxed);
  }
}

}  // namespace vmonce::service
