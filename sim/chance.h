// The chance of a made-up world: one seed, one sequence, on every machine.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/random.h"

namespace vmonce::sim {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). Used
// by one thread.
class Chance final : public Random {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  void Fill(std::span<std::byte> out) override {
    for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t value = Draw();
      std::memcpy(out.data() + at, &value, std::min(sizeof(value), out.size() - at));
    }
  }

  std::uint64_t Draw() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  // In [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(Draw() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool OneIn(std::int64_t n) { return n > 0 && Draw() % static_cast<std::uint64_t>(n) == 0; }
  // A stream of its own, so that what one part draws does not move what another one gets.
  Chance Split() { return Chance(Draw()); }

 private:
  std::uint64_t state_;
};

}  // namespace vmonce::sim
