#include "hypervisor/guard_check.h"

#include <fmt/format.h>

namespace vmonce::hypervisor {

Status CheckDeadline(const ports::EffectGuard& guard, Clock& clock) {
  if (clock.Monotonic() < guard.Deadline()) return {};
  return Fail(ErrorCode::kFenced, "the lease ran out before the effect began");
}

Status CheckOwned(const std::optional<model::Label>& label, const ports::EffectGuard& guard) {
  if (!label) {
    return Fail(ErrorCode::kConflict,
                "what stands there does not carry this ledger's label; it was not touched");
  }
  if (label->fence > guard.fence) {
    return Fail(ErrorCode::kFenced, fmt::format("the label shows fence {}, this effect has {}",
                                                label->fence.value, guard.fence.value));
  }
  return {};
}

}  // namespace vmonce::hypervisor
