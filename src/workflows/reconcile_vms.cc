#include "workflows/reconcile_vms.h"

#include <algorithm>

#include "base/check.h"
#include "model/limits.h"
#include "workflows/reconcile_view.h"

namespace vmonce::workflows {

using model::Observed;
using model::Vm;
using model::VmId;
using model::VmState;

ReconcileVms::ReconcileVms(const WorkflowParts& parts, Logger& logger, ReconcileSettings settings)
    : parts_(parts), logger_(logger), settings_(settings) {}

ReconcileReport ReconcileVms::Sweep(const model::HostId& host) {
  ReconcileReport report;
  report.host = host;
  if (const Status connected = parts_.fleet.Connect(host); !connected) {
    report.problem = connected.error().detail;
    const Result<bool> is_dead = parts_.fleet.IsDead(host);
    if (is_dead && *is_dead) {
      // Not being contacted is what was asked for.
      report.problem.clear();
      GiveUpOn(host, report);
    }
    return report;
  }
  View view;
  if (const Status read = Read(host, view); !read) {
    report.problem = read.error().detail;
    return report;
  }
  report.domains = view.domains;
  report.ours = static_cast<int>(view.ours.size());
  CompareRows(view, report);
  // What an older copy of the ledger wants is not what is wanted; and a start that is accepted here
  // would raise the numbers by which other hosts tell that it is one.
  const LedgerAge age = parts_.fleet.Age();
  if (age == LedgerAge::kUntold || age == LedgerAge::kBehind) return report;
  Restart(view, report);
  if (const Status welcomed = WelcomeBack(view, report); !welcomed) {
    report.problem = welcomed.error().detail;
  }
  if (const Status handled = HandleStrays(view, report); !handled) {
    report.problem = handled.error().detail;
  }
  CountVolumes(view, report);
  SweepImages(view);
  return report;
}

// The host first, the ledger second: a row always precedes its machine, so a machine without a row
// is a stray, while with the order reversed it might just have been accepted.
Status ReconcileVms::Read(const model::HostId& host, View& view) const {
  view.host = host;
  view.hypervisor = parts_.fleet.Find(host);
  CHECK(view.hypervisor != nullptr);
  view.is_returning = parts_.fleet.IsReturning(host);
  const Result<std::vector<ports::DomainSighting>> seen = view.hypervisor->List();
  if (!seen) return std::unexpected(seen.error());
  view.domains = static_cast<int>(seen->size());
  std::vector<VmId> ids;
  for (const ports::DomainSighting& domain : *seen) {
    if (!domain.label || domain.label->ledger != parts_.ledger.Id()) continue;
    view.ours.emplace(domain.id, domain);
    ids.push_back(domain.id);
  }
  const Result<std::vector<Vm>> rows = parts_.ledger.VmsOnHost(host, ids);
  if (!rows) return std::unexpected(rows.error());
  for (const Vm& row : *rows) view.rows.emplace(row.id, row);
  const Result<std::vector<VmId>> gone = parts_.ledger.InTombstones(ids);
  if (!gone) return std::unexpected(gone.error());
  view.in_tombstones.insert(gone->begin(), gone->end());
  const Result<std::vector<VmId>> moved = parts_.ledger.MovedAway(host, ids);
  if (!moved) return std::unexpected(moved.error());
  view.moved_away.insert(moved->begin(), moved->end());
  view.now = parts_.ledger.Now();
  return {};
}

void ReconcileVms::CompareRows(const View& view, ReconcileReport& report) const {
  std::vector<ports::Observation> observations;
  for (const auto& [id, row] : view.rows) {
    if (row.host != view.host || row.delete_operation) continue;
    CompareRow(view, row, report, observations);
  }
  if (observations.empty()) return;
  if (const Result<int> stood = parts_.ledger.Observe(observations); !stood) {
    logger_.Warning("observe_failed", {{"host", view.host.value}, {"cause", stood.error().detail}});
  }
}

void ReconcileVms::CompareRow(const View& view, const Vm& row, ReconcileReport& report,
                              std::vector<ports::Observation>& observations) const {
  const auto listed = view.ours.find(row.id);
  std::optional<ports::DomainSighting> seen;
  if (listed != view.ours.end()) seen = listed->second;

  if (row.state == VmState::kCreating) {
    // Its worker adopts it; nothing is advanced here.
    if (seen && row.holder && parts_.ledger.MakeDue(*row.holder)) ++report.made_due;
    return;
  }
  if (row.state != VmState::kReady && row.state != VmState::kMissing) return;

  if (!seen || seen->power != row.observed) {
    // The list is older than the row, and may lag. Only the typed answer to a question asked after
    // the ledger was read counts.
    const Result<std::optional<ports::DomainSighting>> looked = view.hypervisor->Look(row.id);
    if (!looked) return;
    seen = *looked;
    if (seen && !IsOurs(parts_, *seen, row)) seen.reset();
  }
  const Observed observed = seen ? seen->power : Observed::kAbsent;
  const VmState state = seen ? VmState::kReady : VmState::kMissing;
  const std::vector<std::string> addresses = seen ? seen->addresses : std::vector<std::string>();
  if (observed == row.observed && state == row.state && addresses == row.addresses) return;

  ports::Observation observation;
  observation.vm = row.id;
  observation.version = row.version;
  observation.observed = observed;
  if (seen) observation.stopped_by = seen->stopped_by;
  observation.addresses = addresses;
  if (state != row.state) {
    observation.state = state;
    const bool is_missing = state == VmState::kMissing;
    is_missing ? ++report.missing : ++report.found;
    observation.events.push_back(
        VmEvent(parts_, is_missing ? "vm.missing" : "vm.found", row, row.operation));
    logger_.Warning(is_missing ? "vm_missing" : "vm_found",
                    {{"vm", ToString(row.id)}, {"host", view.host.value}});
  }
  observations.push_back(std::move(observation));
}

Status ReconcileVms::HandleStrays(const View& view, ReconcileReport& report) const {
  std::vector<VmId> strays;
  for (const auto& [id, domain] : view.ours) {
    const auto row = view.rows.find(id);
    if (row == view.rows.end()) {
      strays.push_back(id);
      continue;
    }
    const Vm& vm = row->second;
    if (view.moved_away.contains(id)) {
      strays.push_back(id);
    } else if (vm.host && *vm.host != view.host) {
      // An operator's migration, or a URI that points elsewhere now: a second copy is never removed
      // by a machine.
      report.is_alarmed = true;
      ++report.second_copies;
      logger_.Error(
          "second_copy",
          {{"vm", ToString(id)}, {"host", view.host.value}, {"recorded_host", vm.host->value}});
    } else if (!vm.host && !vm.holder && !vm.delete_operation && vm.state == VmState::kFailed) {
      strays.push_back(id);
    } else if (vm.state == VmState::kDeleted) {
      strays.push_back(id);
    }
  }
  report.strays = static_cast<int>(strays.size());
  const Result<std::vector<ports::StraySighting>> noted =
      parts_.ledger.NoteStrays(view.host, strays);
  if (!noted) return std::unexpected(noted.error());

  const auto removals = std::ranges::count_if(
      *noted, [&](const ports::StraySighting& stray) { return IsRemovable(view, stray); });
  const int most =
      std::max(settings_.removals_min, view.domains * settings_.removals_percent / 100);
  const bool may_remove = removals <= most;
  if (!may_remove) {
    report.is_alarmed = true;
    logger_.Error("sweep_stopped",
                  {{"host", view.host.value}, {"would_remove", removals}, {"most", most}});
  }
  for (const ports::StraySighting& stray : *noted) Act(view, stray, may_remove, report);
  return {};
}

// The VM was deleted, or failed without effects, longer ago than the grace; or it was moved to
// another host, which makes this one a second copy that the ledger knows of.
bool ReconcileVms::IsRemovable(const View& view, const ports::StraySighting& stray) const {
  if (stray.sightings < settings_.sightings) return false;
  if (view.now - stray.first_seen < settings_.stray_age) return false;
  const auto row = view.rows.find(stray.vm);
  const bool is_elsewhere = row != view.rows.end() && row->second.host;
  if (is_elsewhere && view.moved_away.contains(stray.vm)) return true;
  if (row != view.rows.end()) {
    const Time since = row->second.deleted.value_or(row->second.updated);
    return view.now - std::max(since, stray.first_seen) >= settings_.orphan_grace;
  }
  return view.in_tombstones.contains(stray.vm) &&
         view.now - stray.first_seen >= settings_.orphan_grace;
}

void ReconcileVms::Act(const View& view, const ports::StraySighting& stray, bool may_remove,
                       ReconcileReport& report) const {
  if (stray.sightings < settings_.sightings) return;
  if (view.now - stray.first_seen < settings_.stray_age) return;
  const ports::EffectGuard guard = GuardOf(view, stray.vm);

  if (IsRemovable(view, stray)) {
    if (!may_remove) return;
    Status removed = view.hypervisor->Destroy(stray.vm, guard);
    if (removed) removed = view.hypervisor->Undefine(stray.vm, guard);
    if (removed) removed = view.hypervisor->DeleteSeed(stray.vm, guard);
    if (removed) ++report.removed;
    logger_.Warning(
        "orphan_removed",
        {{"vm", ToString(stray.vm)}, {"host", view.host.value}, {"done", removed.has_value()}});
    return;
  }
  const bool is_unclaimed = !view.rows.contains(stray.vm) && !view.in_tombstones.contains(stray.vm);
  if (!is_unclaimed || stray.is_quarantined) return;
  // Neither a row nor a tombstone knows it (a restored ledger, say): stopped and reported, never
  // deleted by itself.
  const Status stopped = view.hypervisor->Destroy(stray.vm, guard);
  if (!stopped || !parts_.ledger.MarkQuarantined(view.host, stray.vm)) return;
  ++report.quarantined;
  logger_.Warning("orphan_quarantined",
                  {{"vm", ToString(stray.vm)},
                   {"host", view.host.value},
                   {"operation", ToString(view.ours.at(stray.vm).label->operation)}});
}

// Its own fence: nobody else's effect is overruled by a sweep.
ports::EffectGuard ReconcileVms::GuardOf(const View& view, const VmId& vm) const {
  return {view.ours.at(vm).label->fence, parts_.clock.Monotonic() + model::limits::kCallDeadline};
}

// What was brought there and is in the store no more. The host first, the store second: an image is
// in the store before it is brought anywhere. Disks of machines that nobody wants any more may
// still stand on it: then it stays.
void ReconcileVms::SweepImages(const View& view) const {
  if (parts_.stored_images == nullptr) return;
  const Result<std::vector<Digest>> there = view.hypervisor->ListImages();
  if (!there || there->empty()) return;
  const Result<std::vector<model::StoredImage>> stored = parts_.stored_images->StoredImages();
  if (!stored) return;
  for (const Digest& digest : *there) {
    if (std::ranges::find(*stored, digest, &model::StoredImage::disk) != stored->end()) continue;
    const Status removed = view.hypervisor->RemoveImage(digest);
    if (removed) {
      logger_.Info("host_image_removed", {{"host", view.host.value}, {"image", ToHex(digest)}});
    } else if (removed.error().code != ErrorCode::kConflict) {
      logger_.Warning("host_image_kept",
                      {{"host", view.host.value}, {"cause", removed.error().detail}});
    }
  }
}

void ReconcileVms::CountVolumes(const View& view, ReconcileReport& report) const {
  const Result<std::vector<ports::VolumeSighting>> volumes = view.hypervisor->ListVolumes();
  if (!volumes) return;
  for (const ports::VolumeSighting& volume : *volumes) {
    const auto row = view.rows.find(volume.vm);
    const bool is_wanted = row != view.rows.end() && row->second.host == view.host;
    if (!is_wanted && !view.ours.contains(volume.vm)) ++report.kept_volumes;
  }
}

}  // namespace vmonce::workflows
