// Bounds of what a request says of itself, each with its reason.
#pragma once

#include <chrono>

namespace vmonce::model::limits {

// How far a client's time of a first sending may be from the ledger's, either way, with a key that
// is not known: clocks that are kept at all differ by less, and whoever has retried for longer
// wants to know what became of the first try.
inline constexpr std::chrono::seconds kFirstSentTolerance{300};

}  // namespace vmonce::model::limits
