#include "sim/restorer.h"

#include "hypervisor/host_threads.h"
#include "hypervisor/simulated_driver.h"
#include "sim/doors.h"
#include "sim/mutants.h"
#include "sim/stage.h"
#include "workflows/rebuild.h"

namespace vmonce::sim {
namespace {

constexpr Milliseconds kCallBound{20'000};
constexpr Milliseconds kLookBound{8'000};
// Hosts that do not answer are asked again; far more often than any stays away.
constexpr int kTries = 60;

// The hosts as the offline command reaches them.
std::unique_ptr<workflows::Fleet> NewFleet(Stage& stage) {
  auto fleet =
      std::make_unique<workflows::Fleet>(*stage.ledger, stage.world_threads, *stage.null_logger);
  for (std::size_t i = 0; i < stage.machines.size(); ++i) {
    const Machine& machine = stage.machines[i];
    auto raw = std::make_shared<hypervisor::SimulatedDriver>(
        machine.host, NewHostFaults(stage, i),
        hypervisor::SimulatedDriverOptions{Milliseconds(0), stage.shape.settle}, stage.clock,
        stage.world_threads);
    hypervisor::HostThreadsOptions options{machine.id.value, 3,          kCallBound,
                                           kLookBound,       kLookBound, {}};
    fleet->Add(
        {machine.id, "simulated:" + machine.id.value, {}},
        NewHostDoor(stage, "rebuild", machine.id.value,
                    MutatedReading(stage, std::make_unique<hypervisor::HostThreads>(
                                              std::move(raw), std::move(options), stage.clock,
                                              stage.world_threads, *stage.null_logger))));
  }
  return fleet;
}

}  // namespace

void Restorer::Run() {
  if (!stage_.Happens(FaultKind::kOlderLedger)) {
    is_done_ = true;
    return;
  }
  Sleep(Milliseconds(stage_.work_chance.Between(0, 20'000)));
  // A create that waits for its placing in the copy, and was placed since, shows no number that is
  // ahead: nothing tells that such a copy is old (docs/operations.md says what to do).
  for (int i = 0; i < kTries; ++i) {
    const auto totals = stage_.ledger->Totals();
    if (totals && totals->unfinished == 0) break;
    Sleep(Milliseconds(1'000));
  }
  const auto totals = stage_.ledger->Totals();
  if (!totals || totals->unfinished != 0) {
    is_done_ = true;
    return;
  }
  stage_.ledgers.Copy();
  stage_.Tell("operator", "copies the ledger");
  Sleep(Milliseconds(stage_.work_chance.Between(1'000, 40'000)));

  Close();
  stage_.ledgers.Restore();
  stage_.store = MutatedStore(stage_);
  stage_.Tell("operator", "restores the copy");
  stage_.oracle.LedgerIsOlder();
  // A host that does not answer is compared when it does, and until then what it has is not known.
  stage_.are_hosts_well = true;
  Reopen();
  Sleep(Milliseconds(stage_.work_chance.Between(10'000, 90'000)));

  Close();
  if (!Rebuild()) {
    stage_.story.Break("a_ledger_is_rebuilt", "it is not whole although every host answers");
  }
  stage_.are_hosts_well = false;
  stage_.oracle.LedgerIsWhole();
  Reopen();
  is_done_ = true;
}

void Restorer::Sleep(Milliseconds duration) {
  const Instant end = stage_.scheduler.now() + duration;
  while (stage_.scheduler.now() < end) stage_.scheduler.Park(end);
}

void Restorer::Close() {
  stage_.is_closed = true;
  for (const auto& replica : replicas_) replica->Crash();
  Sleep(kCallBound + stage_.shape.settle);
}

void Restorer::Reopen() {
  stage_.is_closed = false;
  for (const auto& replica : replicas_) replica->Boot();
}

bool Restorer::Rebuild() {
  for (int i = 0; i < kTries; ++i) {
    const auto fleet = NewFleet(stage_);
    const auto rows = MutatedRows(stage_);
    workflows::Rebuild rebuild(
        {*stage_.ledger, *rows, *stage_.ledger, *fleet, stage_.clock, stage_.replica_chance});
    const auto report = rebuild.Run({});
    stage_.Tell("operator", "rebuilds the ledger: {}", report ? "done" : report.error().detail);
    if (report && report->IsWhole()) return true;
    Sleep(Milliseconds(5'000));
  }
  return false;
}

}  // namespace vmonce::sim
