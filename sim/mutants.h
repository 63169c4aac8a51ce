// Production code broken on purpose, one rule at a time, by a decorator at one of its doors: each
// must be caught, or the checkers prove nothing. Never in production code, and only where a world
// asks for one by name. docs/simulation.md tells which checker catches which.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/saga.h"
#include "ports/hypervisor.h"
#include "ports/ledger.h"
#include "ports/ledger_rebuild.h"
#include "workflows/reconcile_vms.h"

namespace vmonce::hypervisor {
class SimulatedHost;
}

namespace vmonce::sim {

struct Stage;

enum class Mutant {
  kIdentityNotFixed,          // Every attempt makes a machine of another id.
  kLookSkipped,               // Nothing is looked for before the effects of an attempt.
  kLookBlind,                 // A look finds nothing, ever.
  kListBelieved,              // A look is answered from the list.
  kTextBelieved,              // "not found" in an error's text is taken for absence.
  kUnknownTakenForDone,       // An effect's unknown outcome is taken for done.
  kFenceIgnoredInLedger,      // A record is written whatever its fence.
  kFenceIgnoredBesideEffect,  // An effect is carried out whatever the label's fence.
  kDeadlineIgnored,           // An effect is carried out although its lease ran out.
  kUndoNotFenced,             // Both, of what takes away only.
  kFenceNotIncreased,         // A take-over goes on with the old fence.
  kRenewalAlwaysSucceeds,     // A lost lease is never told.
  kSettleIgnored,             // A not-found is believed before the settle time.
  kUndoOfStartForgotten,
  kUndoOfDiskForgotten,
  kPlacementNotReleased,  // The undo keeps the host.
  kPublishOverMark,       // Nobody looks for the delete mark.
  kReservationKept,       // A failed or deleted VM keeps its reservation.
  kTombstonesInvented,    // Orphans without a row or tombstone are removed as if one were there.
  kLedgerReadBeforeHost,  // The sweep reads rows first, and acts at the first sighting.
  kStrangersStopped,      // A domain without our label is taken for ours.
  kKeyNotUnique,          // A known key is claimed again.
  kTombstoneForgotten,    // The same, once its record has expired.
  kKeyStoredOnRefusal,    // A refused create consumes its key.
  kCheckedBeforeKnown,    // The quota is looked at before the key.
  kQuotaNotChecked,
  kCapacityNotChecked,
  kOperationReadOnce,  // What a replay tells is remembered for ever.
  kRowReadOnce,        // A VM's row is.
  kUserDataDropped,    // Sealed user data is dropped with the first record.
  kSecretInTimeline,
  kEventsToldTwice,
  kPatchLost,              // A change of a VM is told and not made.
  kMarkerNotRequired,      // A registered host may be an empty machine.
  kRebuildForgetsKeys,     // What is read from the hosts has no key.
  kRebuildGivesNewIds,     // It has other ids.
  kRebuildSkipsMachines,   // One is not read.
  kRebuildTakesStrangers,  // What has no label is taken for ours.
  kRebuildKeepsSequence,   // The next accept number is below those in labels.
};
inline constexpr std::size_t kMutants = static_cast<std::size_t>(Mutant::kRebuildKeepsSequence) + 1;

// "look_skipped", ...
std::string_view ToString(Mutant mutant);
std::optional<Mutant> ParseMutant(std::string_view text);

// What the stage's mutant makes of each; the same when it has none, or one of elsewhere. The ledger
// itself (its rules), a replica's own view of it, a host's door, and so on.
std::unique_ptr<ports::Ledger> MutatedStore(Stage& stage);
std::unique_ptr<ports::Ledger> Mutated(Stage& stage, std::unique_ptr<ports::Ledger> ledger);
std::unique_ptr<ports::Hypervisor> Mutated(Stage& stage, std::size_t machine,
                                           std::unique_ptr<ports::Hypervisor> host);
// Beside the effect, below everything that counts the time of calls.
std::unique_ptr<ports::Hypervisor> MutatedGuards(Stage& stage,
                                                 std::shared_ptr<hypervisor::SimulatedHost> reached,
                                                 std::unique_ptr<ports::Hypervisor> host);
// What a rebuild writes to, and reads from.
std::unique_ptr<ports::LedgerRebuild> MutatedRows(Stage& stage);
std::unique_ptr<ports::Hypervisor> MutatedReading(Stage& stage,
                                                  std::unique_ptr<ports::Hypervisor> host);
engine::SagaTable Mutated(Stage& stage, const engine::SagaTable& sagas);
workflows::ReconcileSettings Mutated(const Stage& stage, workflows::ReconcileSettings settings);
Milliseconds MutatedSettle(const Stage& stage, Milliseconds settle);

}  // namespace vmonce::sim
