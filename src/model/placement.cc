#include "model/placement.h"

namespace vmonce::model {
namespace {

// Wide enough that the product of any two amounts is exact.
using Wide = __int128;

std::int64_t FreeMemoryAfter(const Host& host, const Resources& demand) {
  return host.capacity.memory_mib - host.reserved.memory_mib - demand.memory_mib;
}

bool HasRoom(const Candidate& candidate, const Resources& demand) {
  const Host& host = candidate.host;
  return candidate.is_reachable && host.state == HostState::kActive && !host.is_returning &&
         (host.reserved + demand).FitsIn(host.capacity);
}

// Compares shares as products: a rounded quotient could call a tie where there is none. A host
// without memory that has room all the same has a share of nothing.
bool IsBetter(const Host& a, const Host& b, const Resources& demand) {
  const Wide left = Wide{FreeMemoryAfter(a, demand)} * b.capacity.memory_mib;
  const Wide right = Wide{FreeMemoryAfter(b, demand)} * a.capacity.memory_mib;
  if (left != right) return left > right;
  return a.id < b.id;
}

}  // namespace

std::optional<HostId> PickHost(std::span<const Candidate> candidates, const Resources& demand) {
  const Host* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (!HasRoom(candidate, demand)) continue;
    if (best == nullptr || IsBetter(candidate.host, *best, demand)) best = &candidate.host;
  }
  if (best == nullptr) return std::nullopt;
  return best->id;
}

}  // namespace vmonce::model
