// A clock that tests move by hand.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace vmonce {

// Thread-safe. Starts at 2026-01-01T00:00:00Z and stands still until it is moved. Nothing that
// waits on the operating system (Monitor::WaitUntil, Threads::SleepFor) notices it.
class FakeClock final : public Clock {
 public:
  Time Now() override { return FromUnixMs(kStartMs + elapsed_ms_.load()); }
  Instant Monotonic() override { return Instant(Milliseconds(elapsed_ms_.load())); }

  void Advance(Milliseconds by) { elapsed_ms_ += by.count(); }

 private:
  static constexpr std::int64_t kStartMs = 1'767'225'600'000;
  std::atomic<std::int64_t> elapsed_ms_{0};
};

}  // namespace vmonce
