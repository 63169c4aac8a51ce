#include "sim/world.h"

#include "base/check.h"
#include "sim/client.h"
#include "sim/operator.h"
#include "sim/replica.h"
#include "sim/restorer.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

// Some hundred times as many switches as worlds need: one that needs them never comes to rest.
constexpr std::uint64_t kTurns = 1'000'000;
// After the last fault, everything that was begun ends within this: backoffs, leases, calls that
// hang, settle times and the waits between sweeps, some of them after each other.
constexpr Milliseconds kToEnd{3 * 3'600'000};

class World {
 public:
  World(const WorldOptions& options, Workshop& workshop);

  WorldReport Run();

 private:
  void MakeMachines();
  void PlantStrangers();
  // The world's story, on a fiber of its own.
  void Play();
  void WaitForClients();
  bool ComeToRest();
  void AskAgain();
  bool LetOrphansGo();
  void SleepLong();
  void StopReplicas();
  bool IsQuiet();
  void Sleep(std::chrono::nanoseconds duration) {
    const Instant end = stage_.scheduler.now() + duration;
    while (stage_.scheduler.now() < end) stage_.scheduler.Park(end);
  }
  void Restart(Replica& replica, Milliseconds after);

  const WorldOptions options_;
  Stage stage_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<Client>> clients_;
};

World::World(const WorldOptions& options, Workshop& workshop)
    : options_(options), stage_(options.seed, options.faults, options.story_lines, workshop) {
  Shape& shape = stage_.shape;
  shape.replicas = options.replicas.value_or(shape.replicas);
  shape.hosts = options.hosts.value_or(shape.hosts);
  shape.clients = options.clients.value_or(shape.clients);
  shape.requests = options.requests.value_or(shape.requests);
  if (shape.replicas > 1 && shape.is_embedded) {
    shape.is_embedded = false;
    shape.settle = Milliseconds(30'000);
  }
  for (const FaultKind kind : options.without) stage_.faults.Remove(kind);
  stage_.mutant = options.mutant;
  // What a restored ledger forgets, and what people did beside us, cannot be told apart.
  if (stage_.faults.Has(FaultKind::kOlderLedger)) {
    for (const FaultKind kind :
         {FaultKind::kMigrated, FaultKind::kRemovedByHand, FaultKind::kTwoUris,
          FaultKind::kHostDead, FaultKind::kRepointed, FaultKind::kQuotaEdge,
          FaultKind::kCapacityEdge, FaultKind::kLongSleep,
          // A rebuild can only believe what a host says of itself.
          FaultKind::kListLag, FaultKind::kListOmits}) {
      stage_.faults.Remove(kind);
    }
  }
  const std::int64_t asked = std::int64_t{shape.clients} * shape.requests;
  if (stage_.Happens(FaultKind::kQuotaEdge)) {
    shape.quota_vms = stage_.work_chance.Between(1, asked);
  }
  if (stage_.Happens(FaultKind::kCapacityEdge)) {
    shape.capacity_vms = stage_.work_chance.Between(1, asked);
  }
  stage_.store = MutatedStore(stage_);
  MakeMachines();
  for (int i = 0; i < shape.replicas; ++i) {
    replicas_.push_back(std::make_unique<Replica>(stage_, i));
  }
  for (int i = 0; i < shape.clients; ++i) {
    clients_.push_back(std::make_unique<Client>(stage_, replicas_, i));
  }
  stage_.crash_current = [this] {
    const Owner owner = stage_.scheduler.CurrentOwner();
    for (const auto& replica : replicas_) {
      if (replica->owner() != owner || !replica->IsUp()) continue;
      Restart(*replica, Milliseconds(stage_.work_chance.Between(100, 40'000)));
      replica->Crash();
    }
  };
  stage_.sleep_current = [this] {
    const Owner owner = stage_.scheduler.CurrentOwner();
    for (const auto& replica : replicas_) {
      if (replica->owner() == owner) replica->MaySleep();
    }
  };
}

void World::MakeMachines() {
  for (int i = 0; i < stage_.shape.hosts; ++i) {
    const model::HostId id{fmt::format("host-{}", i)};
    if (i == 1 && stage_.Happens(FaultKind::kTwoUris)) {
      stage_.machines.push_back({id, stage_.machines.front().host});
      continue;
    }
    auto host = std::make_shared<hypervisor::SimulatedHost>(hypervisor::SimulatedOptions{},
                                                            stage_.clock, stage_.no_threads);
    host->Watch([this, id](const model::VmId& vm, const auto& before, const auto& after) {
      stage_.oracle.HostChanged(id, vm, before, after);
    });
    stage_.machines.push_back({id, std::move(host)});
  }
  if (stage_.Happens(FaultKind::kStranger)) PlantStrangers();
}

// By name like one of ours, by label nobody's; and one of another ledger.
void World::PlantStrangers() {
  for (const Machine& machine : stage_.machines) {
    hypervisor::SimulatedDomain domain;
    domain.id = {NewUuidV7(stage_.clock, stage_.work_chance)};
    domain.name = model::DomainName(stage_.ledger->Id(), domain.id);
    domain.power = model::Observed::kRunning;
    stage_.oracle.SetHand(Oracle::Hand::kMeddler);
    stage_.oracle.Strange(domain.id);
    machine.host->Plant(domain);
    domain.id = {NewUuidV7(stage_.clock, stage_.work_chance)};
    domain.name += "-other";
    domain.label = model::Label{};
    domain.label->ledger = model::LedgerId{"another-ledger"};
    stage_.oracle.Strange(domain.id);
    machine.host->Plant(domain);
    stage_.oracle.SetHand(Oracle::Hand::kOurs);
    // A rebuild would have to believe the next one's label.
    if (stage_.faults.Has(FaultKind::kOlderLedger)) continue;
    stage_.oracle.SetHand(Oracle::Hand::kMeddler);
    // And one of ours that no row wants: of before its rows were lost, say.
    domain.id = {NewUuidV7(stage_.clock, stage_.work_chance)};
    domain.name = model::DomainName(stage_.ledger->Id(), domain.id);
    domain.label->ledger = stage_.ledger->Id();
    machine.host->Plant(domain);
    stage_.oracle.Planted(machine.id, domain.id);
    stage_.oracle.SetHand(Oracle::Hand::kOurs);
  }
}

void World::Restart(Replica& replica, Milliseconds after) {
  stage_.scheduler.Spawn(kWorld, "restart", [this, &replica, after] {
    Sleep(after);
    while (stage_.is_closed) Sleep(Milliseconds(1'000));
    replica.Boot();
  });
}

void World::Play() {
  for (const auto& replica : replicas_) replica->Boot();
  Operator person(stage_, replicas_);
  for (const auto& client : clients_) {
    stage_.scheduler.Spawn(kWorld, "client", [&client = *client] { client.Run(); });
  }
  stage_.scheduler.Spawn(kWorld, "operator", [&person] { person.Run(); });
  Restorer restorer(stage_, replicas_);
  stage_.scheduler.Spawn(kWorld, "restorer", [&restorer] { restorer.Run(); });
  WaitForClients();
  while (!restorer.IsDone()) Sleep(Milliseconds(1'000));
  Sleep(Milliseconds(stage_.work_chance.Between(0, 60'000)));
  stage_.Tell("the world", "no more faults");
  stage_.faults.Stop();
  while (!person.IsDone()) Sleep(Milliseconds(1'000));
  stage_.ledger_down_until = stage_.scheduler.now();
  for (Machine& machine : stage_.machines) machine.down_until = stage_.scheduler.now();
  person.SetRight();
  if (!ComeToRest()) {
    return stage_.story.Break("everything_ends", "something is unfinished three hours later");
  }
  stage_.oracle.SetCalm(true);
  AskAgain();
  if (!ComeToRest()) {
    return stage_.story.Break("everything_ends", "something is unfinished after the last retries");
  }
  if (!LetOrphansGo() && !stage_.story.IsBroken()) {
    // A machine that cannot run (its disk went with a deletion that an older ledger does not know
    // of) is started again and again: looked at between two tries.
    if (!ComeToRest()) {
      return stage_.story.Break("everything_ends", "something is unfinished in the end");
    }
    stage_.oracle.Audit();
  }
  stage_.oracle.MarkWhatHappened();
  for (const auto& replica : replicas_) replica->MarkWhatHappened();
  if (stage_.faults.Has(FaultKind::kLongSleep) && !stage_.story.IsBroken()) SleepLong();
  StopReplicas();
}

void World::WaitForClients() {
  const auto is_done = [](const auto& client) { return client->IsDone(); };
  while (!std::ranges::all_of(clients_, is_done)) Sleep(Milliseconds(2'000));
}

bool World::IsQuiet() {
  for (const auto& replica : replicas_) {
    if (!replica->IsUp() || stage_.scheduler.IsPaused(replica->owner())) return false;
  }
  const auto totals = stage_.ledger->Totals();
  return totals && totals->unfinished == 0;
}

bool World::ComeToRest() {
  const Instant end = stage_.scheduler.now() + kToEnd;
  while (!IsQuiet() && !stage_.story.IsBroken()) {
    if (stage_.scheduler.now() > end) return false;
    Sleep(Milliseconds(5'000));
  }
  return true;
}

// A retry is always safe, and in the end it is always answered.
void World::AskAgain() {
  for (const auto& client : clients_) {
    if (client->AskAllAgain()) continue;
    stage_.story.Break("every_retry_is_answered", "a key is not answered although all is well");
  }
}

// Until all is as it must be (true), or what may take its time has had it: the age of strays, the
// grace for orphans, and some sweeps more.
bool World::LetOrphansGo() {
  // What came late, or was done again behind a call that hung, a sweep has seen.
  const Milliseconds sweep = stage_.shape.reconcile_every;
  Sleep(std::max(stage_.settled_at, stage_.scheduler.now()) - stage_.scheduler.now() + sweep);
  const Instant end =
      stage_.scheduler.now() + Milliseconds(75'000 + 120'000) + stage_.shape.settle + 3 * sweep;
  // What may only be kept is looked at when it has been kept for long.
  const bool is_patient = stage_.oracle.IsAnyUnclaimed() || stage_.work_chance.OneIn(16);
  while (stage_.scheduler.now() < end) {
    if (!is_patient && stage_.oracle.IsAllWell()) return true;
    Sleep(Milliseconds(15'000));
  }
  return false;
}

// Weeks in which nobody asks. A machine outlives every window: its key is answered as ever.
void World::SleepLong() {
  stage_.faults.Count(FaultKind::kLongSleep);
  stage_.Tell("the world", "sleeps for 40 days");
  stage_.scheduler.Leap(std::chrono::hours(40 * 24));
  Sleep(Milliseconds(180'000));
  stage_.oracle.TimePassed();
  AskAgain();
  if (!ComeToRest()) stage_.story.Break("everything_ends", "something is unfinished after weeks");
}

void World::StopReplicas() {
  for (const auto& replica : replicas_) replica->Stop(Milliseconds(60'000));
}

WorldReport World::Run() {
  const FiberId playing = stage_.scheduler.Spawn(kWorld, "world", [this] { Play(); });
  const bool has_ended = stage_.scheduler.RunUntilEnded(playing, kTurns);
  if (!has_ended) {
    stage_.story.Break("everything_ends", "the world never comes to rest");
  }
  WorldReport report;
  report.hash = stage_.story.hash();
  report.invariant = stage_.story.invariant();
  report.breach = stage_.story.breach();
  report.story.assign(stage_.story.lines().begin(), stage_.story.lines().end());
  report.fired = stage_.faults.fired();
  report.marks = stage_.story.marks();
  report.turns = stage_.scheduler.turns();
  report.replicas = stage_.shape.replicas;
  report.hosts = stage_.shape.hosts;
  report.clients = stage_.shape.clients;
  report.requests = stage_.shape.requests;
  return report;
}

}  // namespace

WorldReport RunWorld(const WorldOptions& options, Workshop& workshop) {
  World world(options, workshop);
  return world.Run();
}

}  // namespace vmonce::sim
