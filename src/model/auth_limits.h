// The bounds of authentication, each with its reason.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace vmonce::model::limits {

// The secret of a token; what no search ever finds.
inline constexpr std::size_t kTokenSecretBytes = 32;
// Of those, shown to people as hexadecimal digits: enough to tell one's tokens apart, and 232 bits
// stay unknown.
inline constexpr std::size_t kTokenPrefixDigits = 6;
// "who or what uses it".
inline constexpr std::size_t kTokenNameBytes = 100;
// All records, ended ones too; they are held in memory, at about 300 bytes each.
inline constexpr std::size_t kTokens = 10'000;
// An ended record is kept so long, so that its id in a timeline still means something.
inline constexpr std::chrono::hours kTokenRecord{365 * 24};
// A client's file of tokens.
inline constexpr std::size_t kTokenFileBytes = 64 << 10;
// How often the tokens are read again; a change of this process counts at once.
inline constexpr Milliseconds kTokenRefresh{1'000};
// The bound of a revocation made elsewhere: tokens that were read longer ago let nobody in.
inline constexpr Milliseconds kTokenStaleness{10'000};

// Requests of one token a second, and at once (settings): far above what a person or a pipeline
// sends, far below what one core serves.
inline constexpr std::int64_t kTokenRate = 1'000;
inline constexpr std::int64_t kTokenBurst = 2'000;
inline constexpr std::int64_t kTokenRateMax = 1'000'000;
// Refusals for wrong or missing credentials that one address hears a second, and at once; beyond
// them, 429. They keep the log readable; no rate makes 256 bits guessable.
inline constexpr std::int64_t kStrangerRate = 10;
inline constexpr std::int64_t kStrangerBurst = 100;
// Addresses told apart; about 1 MiB.
inline constexpr std::size_t kStrangers = 10'000;
// Records with a key of one project (setting): about 10 GiB of ledger.
inline constexpr std::int64_t kQuotaKeys = 5'000'000;
inline constexpr std::size_t kConfigProjects = 1'000;

}  // namespace vmonce::model::limits
