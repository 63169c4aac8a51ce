#include "sim/mutants.h"

#include <array>

#include "sim/stage.h"

namespace vmonce::sim {
namespace {

constexpr std::array<std::string_view, kMutants> kNames{
    "identity_not_fixed",
    "look_skipped",
    "look_blind",
    "list_believed",
    "text_believed",
    "unknown_taken_for_done",
    "fence_ignored_in_ledger",
    "fence_ignored_beside_effect",
    "deadline_ignored",
    "undo_not_fenced",
    "fence_not_increased",
    "renewal_always_succeeds",
    "settle_ignored",
    "undo_of_start_forgotten",
    "undo_of_disk_forgotten",
    "placement_not_released",
    "publish_over_mark",
    "reservation_kept",
    "tombstones_invented",
    "ledger_read_before_host",
    "strangers_stopped",
    "key_not_unique",
    "tombstone_forgotten",
    "key_stored_on_refusal",
    "checked_before_known",
    "quota_not_checked",
    "capacity_not_checked",
    "operation_read_once",
    "row_read_once",
    "user_data_dropped",
    "secret_in_timeline",
    "events_told_twice",
    "patch_lost",
    "marker_not_required",
    "rebuild_forgets_keys",
    "rebuild_gives_new_ids",
    "rebuild_skips_machines",
    "rebuild_takes_strangers",
    "rebuild_keeps_sequence",
};

engine::Step* FindStep(engine::Saga& saga, std::string_view name) {
  const auto found = std::ranges::find(saga.steps, name, &engine::Step::name);
  return found == saga.steps.end() ? nullptr : &*found;
}

void MutateCreate(Mutant mutant, engine::Saga& saga) {
  switch (mutant) {
    case Mutant::kLookSkipped: saga.look = nullptr; break;
    case Mutant::kUndoOfStartForgotten: FindStep(saga, "start")->undo = nullptr; break;
    case Mutant::kUndoOfDiskForgotten: FindStep(saga, "disk")->undo = nullptr; break;
    case Mutant::kPlacementNotReleased: FindStep(saga, "place")->undo = nullptr; break;
    case Mutant::kPublishOverMark: saga.is_marked = nullptr; break;
    case Mutant::kSecretInTimeline: {
      engine::Step& seed = *FindStep(saga, "seed");
      seed.run = [run = seed.run](const engine::StepContext& context) {
        engine::StepResult result = run(context);
        result.detail += "with SECRET";
        return result;
      };
      break;
    }
    default: break;
  }
}

}  // namespace

std::string_view ToString(Mutant mutant) { return kNames[static_cast<std::size_t>(mutant)]; }

std::optional<Mutant> ParseMutant(std::string_view text) {
  const auto found = std::ranges::find(kNames, text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Mutant>(found - kNames.begin());
}

engine::SagaTable Mutated(Stage& stage, const engine::SagaTable& sagas) {
  if (!stage.mutant) return sagas;
  engine::SagaTable mutated;
  for (const auto kind :
       {model::OperationKind::kCreate, model::OperationKind::kDelete, model::OperationKind::kStart,
        model::OperationKind::kStop, model::OperationKind::kReboot}) {
    const engine::Saga* saga = sagas.Find(kind);
    if (saga == nullptr) continue;
    engine::Saga copy = *saga;
    if (kind == model::OperationKind::kCreate) MutateCreate(*stage.mutant, copy);
    mutated.Add(std::move(copy));
  }
  return mutated;
}

workflows::ReconcileSettings Mutated(const Stage& stage, workflows::ReconcileSettings settings) {
  if (stage.mutant == Mutant::kLedgerReadBeforeHost) {
    settings.sightings = 1;
    settings.stray_age = Milliseconds(0);
  }
  return settings;
}

Milliseconds MutatedSettle(const Stage& stage, Milliseconds settle) {
  return stage.mutant == Mutant::kSettleIgnored ? Milliseconds(0) : settle;
}

}  // namespace vmonce::sim
