// Bounds of the engine's records and of what is read beside them.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace vmonce::model::limits {

// A record of progress alone may wait so long for the next: above what a step on a host without
// latency takes, and below any call of a real hypervisor, after each of which the progress is to be
// seen: the next call may take long.
inline constexpr Milliseconds kRecordWithin{2};

// Rows of VMs that the ledger keeps at hand: of some hundred batches. About 1 KiB each.
inline constexpr std::size_t kHotVms = 8192;

// A figure of the hosts' capacity that nobody renewed for so long is read again by whoever asks.
inline constexpr Milliseconds kCapacityAgeMost{10'000};

}  // namespace vmonce::model::limits
