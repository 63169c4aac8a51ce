// How many requests one caller may send: a token bucket for each, kept as the one moment at which
// it will be full again (the generic cell rate algorithm of ITU-T I.371, which is the same thing).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "base/clock.h"

namespace vmonce::service {

struct Rate {
  std::int64_t per_second = 0;  // Zero: no limit.
  std::int64_t burst = 1;       // How many may come at once.

  bool operator==(const Rate&) const = default;
};

// Takes one from the bucket that is full at `full_at`. Nothing: taken. Else: nothing was, and in so
// long there will be one. Precondition: there is a limit, and its burst is at least 1.
inline std::optional<std::chrono::nanoseconds> TakeOne(const Rate& rate, Instant now,
                                                       Instant& full_at) {
  const std::chrono::nanoseconds each = std::chrono::nanoseconds(std::chrono::seconds(1)) /
                                        std::max<std::int64_t>(rate.per_second, 1);
  const Instant after = std::max(full_at, now) + each;
  const std::chrono::nanoseconds excess = after - now - each * rate.burst;
  if (excess > std::chrono::nanoseconds(0)) return excess;
  full_at = after;
  return std::nullopt;
}

// Buckets of many callers, at most `most`; beyond them, all others share one. Used by one thread at
// a time.
template <typename Key, typename Hash = std::hash<Key>>
class RateLimiter {
 public:
  RateLimiter(Rate rate, std::size_t most) : rate_(rate), most_(most) {}

  // As TakeOne().
  std::optional<std::chrono::nanoseconds> Take(const Key& key, Instant now) {
    if (rate_.per_second == 0) return std::nullopt;
    return TakeOne(rate_, now, BucketOf(key, now));
  }

  std::size_t size() const { return full_at_.size(); }

 private:
  Instant& BucketOf(const Key& key, Instant now) {
    const auto found = full_at_.find(key);
    if (found != full_at_.end()) return found->second;
    if (full_at_.size() >= most_ && now >= next_sweep_) {
      // A full bucket is like none. Looking at all of them is paid at most once a second.
      std::erase_if(full_at_, [now](const auto& bucket) { return bucket.second <= now; });
      next_sweep_ = now + std::chrono::seconds(1);
    }
    if (full_at_.size() >= most_) return shared_;
    return full_at_[key];
  }

  const Rate rate_;
  const std::size_t most_;
  std::unordered_map<Key, Instant, Hash> full_at_;
  Instant shared_{};
  Instant next_sweep_{};
};

}  // namespace vmonce::service
