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

// Each connection that reads has this part of the writer's page cache: what it misses is in the
// kernel's cache, a microsecond away, and the writer alone has to search full indexes.
inline constexpr int kReaderCacheShare = 8;

// VMs share so many marks of when they were last written: some thousand writes a second leave most
// marks alone for seconds. 256 KiB.
inline constexpr std::size_t kVmWatchPlaces = 32 << 10;

// Answers of creates that came again, as text: some six thousand of one VM each. A client that
// retries does so soon.
inline constexpr std::size_t kRepeatedAnswerBytes = 16 << 20;

// A figure of the hosts' capacity that nobody renewed for so long is read again by whoever asks.
inline constexpr Milliseconds kCapacityAgeMost{10'000};

}  // namespace vmonce::model::limits
