// Bounds of the engine's records and of what is read beside them.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace vmonce::model::limits {

// A record of progress alone may wait so long for the next: below what a person sees, and above
// what four steps on a host without latency take. No call to a real hypervisor is as short twice.
inline constexpr Milliseconds kRecordWithin{10};

// Rows of VMs that the ledger keeps at hand: of some hundred batches. About 1 KiB each.
inline constexpr std::size_t kHotVms = 8192;

// A figure of the hosts' capacity that nobody renewed for so long is read again by whoever asks.
inline constexpr Milliseconds kCapacityAgeMost{10'000};

}  // namespace vmonce::model::limits
