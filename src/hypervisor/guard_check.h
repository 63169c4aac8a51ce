// What every adapter checks beside an effect: the lease deadline, the owner of what stands there,
// and the fence in its label (protocol section 10).
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "model/label.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

// kFenced when the deadline has passed. Called right before the hypervisor is.
Status CheckDeadline(const ports::EffectGuard& guard, Clock& clock);

// kConflict without a label (a label of another ledger counts as none), kFenced when the label's
// fence is higher.
Status CheckOwned(const std::optional<model::Label>& label, const ports::EffectGuard& guard);

}  // namespace vmonce::hypervisor
