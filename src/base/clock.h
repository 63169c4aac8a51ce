// The one door to time. Nobody reads a clock but through it, so that a test or a simulated world
// can move it.
#pragma once

#include <chrono>
#include <cstdint>

namespace vmonce {

using Milliseconds = std::chrono::milliseconds;

// Wall-clock time in UTC, to the millisecond: what is written into rows and answers.
using Time = std::chrono::sys_time<Milliseconds>;

// A point on a clock that never jumps: what deadlines and durations are measured with. It means
// nothing outside this process and is never stored.
struct MonotonicTag {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<MonotonicTag>;
  static constexpr bool is_steady = true;
};
using Instant = MonotonicTag::time_point;

inline constexpr Instant kNever = Instant::max();

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Never goes back within one Clock, even when the system's clock is set back.
  virtual Time Now() = 0;
  virtual Instant Monotonic() = 0;
};

inline std::int64_t ToUnixMs(Time time) { return time.time_since_epoch().count(); }
inline Time FromUnixMs(std::int64_t ms) { return Time(Milliseconds(ms)); }

}  // namespace vmonce
