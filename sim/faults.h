// What goes wrong in a made-up world: which kinds, how often, and how often each really happened.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/chance.h"

namespace vmonce::sim {

enum class FaultKind {
  kCrash,                  // A replica is killed between any two calls through its doors.
  kPause,                  // It stands still for longer than its lease.
  kStandby,                // Its computer sleeps, and its monotonic clock does not count it.
  kClockJump,              // Its time of day is set, by up to ten minutes.
  kCommitUnknown,          // A transaction's outcome is not told: its rows are there.
  kCommitUnknownUndone,    // The same, and they are not.
  kLedgerDown,             // Nobody reaches the ledger for a while.
  kReplyLost,              // An effect took place, and its caller is not told.
  kAppliedLate,            // It takes place later, up to the settle time.
  kHostRefuses,            // "Try later", and nothing happened.
  kHostHang,               // A call stands still beyond its deadline.
  kHostDown,               // A host does not answer for a while.
  kHostReboot,             // Every machine of a host is off.
  kHostDead,               // An operator declares it dead; it comes back, with its machines.
  kStartOutlivesUndefine,  // A start that goes on while its domain is undefined leaves it running.
  kListLag,                // A list is older than it says.
  kListOmits,              // A list leaves machines out.
  kNotFoundAsText,         // An error whose text says "not found".
  kClientGone,             // A client does not wait for its answer.
  kAnswerLost,             // An answer never reaches its client.
  kOtherBody,              // A key comes again with another request.
  kFlood,                  // The same request many times at once.
  kDeleteCrosses,          // A machine is deleted, or its create cancelled, while it is made.
  kPatchCrosses,           // Its labels and name are changed while it is made.
  kQuotaEdge,              // The quota is about what is asked for.
  kCapacityEdge,           // The hosts' capacity is.
  kStranger,               // A stranger's domain has a name like ours.
  kRemovedByHand,          // Somebody undefines a machine, or removes its disk, beside us.
  kMigrated,               // An operator moves a machine to another host, beside us.
  kRepointed,              // A host's URI leads to another machine for a while.
  kTwoUris,                // Two hosts of the configuration are one machine.
  kOlderLedger,            // An older copy of the ledger is restored, served, and rebuilt.
  kLongSleep,              // Everything stands still for weeks: keys and records expire.
};
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::kLongSleep) + 1;

// "crash", "commit_unknown", ...
std::string_view ToString(FaultKind kind);
std::optional<FaultKind> ParseFaultKind(std::string_view text);

enum class FaultChoice { kSwarm, kAll, kNone };

// Which kinds a world has. A swarm: each world draws its own, since faults that would always hide
// each other do not.
class Faults {
 public:
  static Faults Draw(FaultChoice choice, Chance& chance);

  bool Has(FaultKind kind) const { return one_in_[Index(kind)] > 0; }
  // Whether it happens now, at one of the places where it may; counts it when it does. Never once
  // Stop() was called.
  bool Happens(FaultKind kind, Chance& chance) {
    const int one_in = one_in_[Index(kind)];
    if (one_in == 0 || has_stopped_ || !chance.OneIn(one_in)) return false;
    Count(kind);
    return true;
  }
  void Count(FaultKind kind) { ++fired_[Index(kind)]; }
  // From here on all goes well, and what was begun must end.
  void Stop() { has_stopped_ = true; }
  bool HasStopped() const { return has_stopped_; }
  void Remove(FaultKind kind) { one_in_[Index(kind)] = 0; }

  const std::array<std::uint64_t, kFaultKinds>& fired() const { return fired_; }

 private:
  static std::size_t Index(FaultKind kind) { return static_cast<std::size_t>(kind); }

  std::array<int, kFaultKinds> one_in_{};
  std::array<std::uint64_t, kFaultKinds> fired_{};
  bool has_stopped_ = false;
};

}  // namespace vmonce::sim
