// The bounds of rebuilding a ledger, each with its reason.
#pragma once

#include "base/clock.h"

namespace vmonce::model::limits {

// How often a create that has no host yet asks whether every host has been read: a person does
// that.
inline constexpr Milliseconds kUnreadWait{10'000};

}  // namespace vmonce::model::limits
