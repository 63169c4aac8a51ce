// The bounds of `vmonce doctor`: how long it asks, and from where on it worries.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace vmonce::model::limits {

// Two instructions and the firmware of an empty machine; longer is a hang.
inline constexpr Milliseconds kDoctorKvm{3'000};
// virsh and nft answer in milliseconds, or wait for a daemon that hangs.
inline constexpr Milliseconds kDoctorTool{5'000};
// A service on this machine or near it.
inline constexpr Milliseconds kDoctorServer{3'000};
// A ruleset of a busy host.
inline constexpr std::size_t kDoctorRulesBytes = 4 << 20;
// The ledger and one small machine; and what one disk image takes.
inline constexpr std::int64_t kDoctorDiskFailMib = 512;
inline constexpr std::int64_t kDoctorDiskWarnMib = 5'120;
// The smallest machine anyone uses; and one of the default size beside the service.
inline constexpr std::int64_t kDoctorMemoryFailMib = 128;
inline constexpr std::int64_t kDoctorMemoryWarnMib = 1'024;
// A certificate or a token that is new would not be valid yet.
inline constexpr std::chrono::seconds kDoctorClockSkew{5};
// Before the first version of this program: a clock that has never been set.
inline constexpr int kDoctorYearMin = 2025;

}  // namespace vmonce::model::limits
