// The one door to chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vmonce {

// Thread-safe. The production source is the operating system's (fit for keys and tokens).
class Random {
 public:
  virtual ~Random() = default;

  virtual void Fill(std::span<std::byte> out) = 0;

  std::uint64_t Next() {
    std::uint64_t value = 0;
    Fill(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // Uniform enough in [0, bound) for jitter and sampling; bound > 0. Not for key material.
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }
};

}  // namespace vmonce
