// What happened in a world, as a hash that two runs of one seed share, and, when somebody wants to
// read it, as lines: who did what when.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace vmonce::sim {

class Story {
 public:
  // `lines`: how many of the last ones are kept; 0: none, and nothing is formatted.
  explicit Story(std::size_t lines) : most_(lines) {}

  bool IsTold() const { return most_ > 0; }
  // Goes into the hash.
  void Mix(std::uint64_t value) {
    hash_ ^= value;
    hash_ *= 0x100000001b3U;  // FNV-1a, a word at a time.
    hash_ ^= hash_ >> 29;
  }
  void Mix(std::string_view text) {
    for (const char c : text) Mix(static_cast<unsigned char>(c));
  }
  // Called only when IsTold().
  void Tell(Instant at, std::string_view who, std::string what);

  // A rare place was reached.
  void Mark(std::string_view name) { ++marks_[std::string(name)]; }

  // An invariant is broken. The first one is kept; the world goes on until it next looks.
  void Break(std::string_view invariant, std::string what);
  bool IsBroken() const { return !invariant_.empty(); }
  const std::string& invariant() const { return invariant_; }
  const std::string& breach() const { return breach_; }

  std::uint64_t hash() const { return hash_; }
  const std::deque<std::string>& lines() const { return lines_; }
  const std::map<std::string, std::uint64_t>& marks() const { return marks_; }

 private:
  const std::size_t most_;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  std::deque<std::string> lines_;
  std::map<std::string, std::uint64_t> marks_;
  std::string invariant_;
  std::string breach_;
};

}  // namespace vmonce::sim
