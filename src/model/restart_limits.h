// How often a machine that its host took down is started again, each figure with its reason.
#pragma once

#include "base/clock.h"

namespace vmonce::model::limits {

// The first restart waits for nothing; the next ones double this: a host that goes up and down
// settles meanwhile.
inline constexpr Milliseconds kRestartBackoffBase{10'000};
inline constexpr Milliseconds kRestartBackoffCap{300'000};
// Six starts within three minutes all ended the same way: a person should look.
inline constexpr int kRestartsInARow = 6;
// A machine that ran so long after a restart has recovered: its next stop is a new story. Far above
// what the backoff waits.
inline constexpr Milliseconds kRestartSteady{900'000};

}  // namespace vmonce::model::limits
