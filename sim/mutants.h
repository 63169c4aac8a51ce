// Production code broken on purpose, one rule at a time, by a decorator at one of its doors: each
// must be caught, or the checkers prove nothing. Never in production code, and only where a world
// asks for one by name.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/saga.h"
#include "ports/hypervisor.h"
#include "ports/ledger.h"

namespace vmonce::sim {

struct Stage;

enum class Mutant {
  kLookSkipped,             // No look before the first effect of an attempt, nor after an unknown.
  kFenceIgnoredInLedger,    // A record is written whatever its fence.
  kFenceIgnoredBesideEffect,  // An effect is carried out whatever the label's fence and the lease.
  kSettleIgnored,           // A not-found is believed before the settle time.
  kFenceNotIncreased,       // A take-over goes on with the old fence.
  kUndoOfStartForgotten,
  kUndoOfDiskForgotten,
  kPlacementNotReleased,    // The undo keeps the host's capacity.
  kPublishOverMark,         // A record does not look for the delete mark.
  kMarkNotSeen,             // The worker does not look for the mark before its effects.
  kTombstonesInvented,      // Rows that are not there count as deleted: orphans without one go.
  kLedgerReadBeforeHost,    // The sweep's list is newer than the rows that it is held against.
  kUnknownTakenForFailed,   // COMMIT's unknown outcome is told as "nothing happened".
  kUnknownTakenForDone,     // An effect's unknown outcome is taken for done.
  kTextBelieved,            // "not found" in an error's text is taken for absence.
  kUserDataDropped,         // The seed is made without it.
  kSecretInTimeline,
  kKeyStoredOnRefusal,      // A refused create consumes its key.
  kCheckedBeforeKnown,      // The quota is looked at before the key.
  kStaleCache,              // A row that was read once is never read again.
  kOperationReadOnce,       // The same for operations.
  kReservationKept,         // A failed or deleted VM keeps its reservation.
  kHostSwappedWhileUnknown, // Another host is chosen although the first one's answer is out.
  kStrangersStopped,        // A domain without our label is taken for ours.
};

// "look_skipped", ...
std::string_view ToString(Mutant mutant);
std::optional<Mutant> ParseMutant(std::string_view text);
std::vector<Mutant> AllMutants();

// What the world's mutant makes of each; the same when it has none, or one of elsewhere.
std::unique_ptr<ports::Ledger> Mutated(Stage& stage, std::unique_ptr<ports::Ledger> ledger);
std::unique_ptr<ports::Hypervisor> Mutated(Stage& stage, std::size_t machine, ports::Ledger& ledger,
                                           std::unique_ptr<ports::Hypervisor> host);
engine::SagaTable Mutated(Stage& stage, engine::SagaTable sagas);
Milliseconds SettleOf(const Stage& stage, Milliseconds settle);

}  // namespace vmonce::sim
