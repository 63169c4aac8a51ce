#include "sim/marks.h"

#include <algorithm>
#include <string_view>

namespace vmonce::sim {
namespace {

// Lines of timelines, what the reconciler did, and what clients were told.
constexpr std::string_view kRare[] = {
    "timeline.taken_over",      // A lease ran out, and another worker went on.
    "timeline.adopted",         // Its machine was found by a look.
    "timeline.step_unknown",    // The outcome of an effect was not told.
    "timeline.step_refused",    //
    "timeline.rewound",         // A step had to begin from the first one again.
    "timeline.undo_begins",     //
    "timeline.step_undone",     //
    "timeline.undo_not_yet",    // An undo's own outcome was not told.
    "timeline.item_failed",     //
    "timeline.item_cancelled",  // Deleted while it was made.
    "timeline.new_attempt",     // The same key, a new attempt.
    "reconciler.missing",
    "reconciler.found",
    "reconciler.made_due",
    "reconciler.quarantined",
    "reconciler.removed",
    "reconciler.restarted",
    "reconciler.stopped",
    "reconciler.alarmed",
    "told.created",
    "told.existing",
    "told.batch",
    "told.idempotency_key_reused",
    "told.idempotency_key_expired",
    "told.quota_exceeded",
    "told.no_capacity",
    "told.ledger_unavailable",
    "told.starting",
};

}  // namespace

std::size_t RareMarksReached(const std::map<std::string, std::uint64_t>& marks) {
  return static_cast<std::size_t>(std::ranges::count_if(
      kRare, [&marks](std::string_view name) { return marks.contains(std::string(name)); }));
}

std::vector<std::string> Unreached(const Tally& tally) {
  std::vector<std::string> unreached;
  for (const std::string_view name : kRare) {
    if (!tally.marks.contains(std::string(name))) unreached.emplace_back(name);
  }
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (tally.fired[i] == 0) unreached.emplace_back(ToString(static_cast<FaultKind>(i)));
  }
  return unreached;
}

}  // namespace vmonce::sim
