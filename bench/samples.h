// Durations, all of them kept, so that percentiles are exact.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"

namespace vmonce::bench {

inline double SecondsBetween(Instant from, Instant to) {
  return std::chrono::duration<double>(to - from).count();
}

class Samples {
 public:
  void Add(Instant from, Instant to) {
    microseconds_.push_back(
        std::chrono::duration_cast<std::chrono::microseconds>(to - from).count());
  }
  std::size_t count() const { return microseconds_.size(); }

  // The smallest that at least this share does not exceed.
  std::int64_t Percentile(double share) {
    CHECK(!microseconds_.empty());
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(count() - 1) + 0.5);
    const auto at = microseconds_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::ranges::nth_element(microseconds_, at);
    return *at;
  }

  // The members of a JSON object.
  std::string Json() {
    return fmt::format(R"("p50_us":{},"p99_us":{},"max_us":{})", Percentile(0.5), Percentile(0.99),
                       Percentile(1));
  }

 private:
  std::vector<std::int64_t> microseconds_;
};

}  // namespace vmonce::bench
