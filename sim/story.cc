#include "sim/story.h"

#include <fmt/format.h>

namespace vmonce::sim {

void Story::Tell(Instant at, std::string_view who, std::string what) {
  // What follows a breach explains nothing.
  if (IsBroken()) return;
  const auto ms = std::chrono::duration_cast<Milliseconds>(at.time_since_epoch()).count();
  lines_.push_back(fmt::format("{:>10}.{:03} s  {:<22} {}", ms / 1000, ms % 1000, who, what));
  if (lines_.size() > most_) lines_.pop_front();
}

void Story::Break(std::string_view invariant, std::string what) {
  if (IsBroken()) return;
  invariant_ = invariant;
  breach_ = std::move(what);
  if (IsTold()) lines_.push_back(fmt::format("BROKEN: {}: {}", invariant_, breach_));
}

}  // namespace vmonce::sim
