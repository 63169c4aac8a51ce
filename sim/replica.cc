#include "sim/replica.h"

#include <fmt/format.h>

#include "base/seal.h"
#include "engine/periodic.h"
#include "engine/worker_pool.h"
#include "hypervisor/host_threads.h"
#include "hypervisor/simulated_driver.h"
#include "model/limits.h"
#include "service/capacity.h"
#include "service/intake.h"
#include "service/reconciler.h"
#include "service/waiters.h"
#include "sim/doors.h"
#include "sim/guard_watch.h"
#include "sim/mutants.h"
#include "sim/stage.h"
#include "workflows/workflows.h"

namespace vmonce::sim {
namespace {

namespace limits = model::limits;

constexpr Milliseconds kTtl{15'000};
// Work that nobody announced waits so long; a made-up second costs what a real one of a busy
// replica does, so nobody polls twice in one.
constexpr Milliseconds kPoll{20'000};
// A third of production's: a world has minutes.
constexpr Milliseconds kCallDeadline{20'000};
constexpr Milliseconds kLookDeadline{8'000};
constexpr Milliseconds kOrphanGrace{120'000};
// Some share a place, and writing nothing into a hundred thousand costs as much as a whole world.
constexpr std::size_t kKnownKeys = 16;

model::Image TinyImage() {
  model::Image image;
  image.name = "tiny";
  image.kind = model::ImageKind::kDisk;
  image.disk_path = "/images/tiny.qcow2";
  image.disk_format = "qcow2";
  return image;
}

class TellEnds final : public engine::WorkObserver {
 public:
  explicit TellEnds(service::Waiters& waiters) : waiters_(waiters) {}
  void StepTried(model::OperationKind, std::string_view, std::string_view, Milliseconds) override {}
  void OperationEnded(const model::Operation& operation) override { waiters_.Ended(operation.id); }

 private:
  service::Waiters& waiters_;
};

}  // namespace

struct Replica::Process {
  Process(Stage& s, Owner owner, const std::string& who, int incarnation)
      : stage(s),
        clock(s.scheduler),
        threads(s.scheduler, owner, clock, s.replica_chance, s.shape.yield_one_in),
        replica{fmt::format("r-{:016x}", incarnation)},
        ledger(Mutated(s, NewLedgerDoor(s, who))),
        fleet(*ledger, threads, *s.null_logger),
        sealer(std::string(32, 'k'), s.replica_chance),
        parts{*ledger,          fleet,
              sealer,           clock,
              s.replica_chance, {Milliseconds(20'000), Milliseconds(1'000), limits::kAskAgain}},
        sagas(Mutated(s, workflows::AllSagas(parts))),
        leases(*ledger, clock, threads, *s.null_logger, {kTtl, limits::kLeaseRenewEvery}),
        waiters(clock, threads),
        observer(waiters),
        capacity(*ledger, clock, threads, Milliseconds(60'000)),
        images(threads, {TinyImage()}) {}

  void AddHosts(const std::string& who);
  void Wire();
  void Start();
  void Stop();

  Stage& stage;
  WorldClock clock;
  FiberThreads threads;
  const model::ReplicaId replica;
  std::unique_ptr<ports::Ledger> ledger;
  workflows::Fleet fleet;
  Sealer sealer;
  workflows::WorkflowParts parts;
  engine::SagaTable sagas;
  engine::LeaseKeeper leases;
  service::Waiters waiters;
  TellEnds observer;
  service::Capacity capacity;
  service::ImageCatalog images;
  std::vector<const hypervisor::HostThreads*> host_doors;
  std::unique_ptr<engine::WorkerPool> workers;
  std::unique_ptr<service::Intake> intake;
  std::unique_ptr<service::VmService> service;
  std::unique_ptr<service::Reconciler> reconciler;
  std::unique_ptr<engine::Periodic> sweeper;
  std::unique_ptr<Thread> renewing;
};

void Replica::Process::AddHosts(const std::string& who) {
  const model::Resources capacity_of_one{.vms = stage.shape.capacity_vms,
                                         .cpus = 1'000,
                                         .memory_mib = 1'000'000,
                                         .disk_gib = 1'000'000};
  for (std::size_t i = 0; i < stage.machines.size(); ++i) {
    const Machine& machine = stage.machines[i];
    // What is ordered of a remote daemon outlives who ordered it; an embedded one dies with it.
    Threads& late = stage.shape.is_embedded ? static_cast<Threads&>(threads) : stage.world_threads;
    auto driver = std::make_unique<hypervisor::SimulatedDriver>(
        machine.reached(), NewHostFaults(stage, i),
        hypervisor::SimulatedDriverOptions{Milliseconds(0), stage.shape.settle}, clock, late);
    std::shared_ptr<ports::Hypervisor> raw =
        Watched(stage, i, machine.reached(), clock,
                MutatedGuards(stage, machine.reached(), std::move(driver)));
    auto bounded = std::make_unique<hypervisor::HostThreads>(
        std::move(raw),
        hypervisor::HostThreadsOptions{
            machine.id.value, 3, kCallDeadline, kLookDeadline, kLookDeadline, {}},
        clock, threads, *stage.null_logger);
    host_doors.push_back(bounded.get());
    fleet.Add(
        {machine.id, "simulated:" + machine.id.value, workflows::CapacityPlan::Of(capacity_of_one)},
        NewHostDoor(stage, who, machine.id.value, Mutated(stage, i, std::move(bounded))));
  }
}

void Replica::Process::Wire() {
  fleet.OnCapacityChange([this] { capacity.Forget(); });
  const Milliseconds settle = MutatedSettle(stage, fleet.SettleTime());
  const engine::WorkerParts worker_parts{*ledger,
                                         sagas,
                                         leases,
                                         observer,
                                         clock,
                                         stage.replica_chance,
                                         *stage.null_logger,
                                         replica,
                                         {{limits::kStepBackoffBase, limits::kStepBackoffCap},
                                          Milliseconds(1'000),
                                          settle,
                                          limits::kStepFailures,
                                          limits::kUndoFailuresStuck,
                                          stage.shape.record_within}};
  workers = std::make_unique<engine::WorkerPool>(
      worker_parts, threads, engine::PoolBounds{stage.shape.workers, kPoll, settle});
  intake = std::make_unique<service::Intake>(*ledger, *workers, replica, kTtl, clock, threads,
                                             *stage.null_logger, service::IntakeBounds{64, 1024});
  service = std::make_unique<service::VmService>(
      service::ServiceParts{
          *ledger, *intake, waiters, *workers, images, sealer, clock, stage.replica_chance, threads,
          *stage.null_logger, [this] { return capacity.Total(); }, replica,
          [this]() -> std::optional<model::Problem> {
            if (fleet.Age() == workflows::LedgerAge::kCurrent) return std::nullopt;
            model::Problem problem;
            problem.code =
                fleet.Age() == workflows::LedgerAge::kBehind ? "ledger_behind" : "starting";
            return problem;
          },
          [this](const model::VmSpec& spec) { return fleet.WhyNotOffered(spec); }},
      service::ServiceSettings{
          service::Quotas(service::ProjectQuota{model::Resources{.vms = stage.shape.quota_vms,
                                                                 .cpus = 1'000,
                                                                 .memory_mib = 1'000'000,
                                                                 .disk_gib = 1'000'000}}),
          1'000,
          std::chrono::seconds(30),
          {},
          kKnownKeys});
  reconciler = std::make_unique<service::Reconciler>(
      parts, threads, *stage.null_logger,
      Mutated(
          stage,
          workflows::ReconcileSettings{kOrphanGrace, kTtl + settle, limits::kStraySightings,
                                       limits::kSweepRemovalsMin, limits::kSweepRemovalsPercent}),
      stage.shape.reconcile_every);
  sweeper = std::make_unique<engine::Periodic>(
      "sweep", limits::kSweepEvery, [this] { (void)ledger->Sweep({}, limits::kSweepRows); }, clock,
      threads);
}

void Replica::Process::Start() {
  waiters.Start();
  renewing = threads.Spawn("leases", [this](std::stop_token stop) { leases.Run(stop); });
  workers->Start();
  intake->Start();
  reconciler->Start();
  sweeper->Start();
}

void Replica::Process::Stop() {
  waiters.Stop();
  intake->Stop();
  reconciler->Stop();
  sweeper->Stop();
  workers->Stop();
  renewing.reset();
}

Replica::Replica(Stage& stage, int number)
    : stage_(stage), number_(number), name_(fmt::format("replica {}", number)) {}

Replica::~Replica() {
  // What still runs is abandoned with the world.
  (void)process_.release();
}

void Replica::Boot() {
  if (process_) return;
  ++boots_;
  owner_ = 1 + number_ + boots_ * 100;
  stage_.Tell(name_, "starts");
  stage_.story.Mix(static_cast<std::uint64_t>(owner_));
  const std::string who = name_;
  process_ = std::make_unique<Process>(stage_, owner_, who, owner_);
  Process& process = *process_;
  process.clock.SetSkew(skew_);
  process.clock.SetSlept(slept_);
  stage_.scheduler.Spawn(owner_, who + " main", [&process, who] {
    process.AddHosts(who);
    process.Wire();
    process.Start();
  });
}

void Replica::Crash() {
  if (!process_) return;
  stage_.Tell(name_, "is killed");
  // Nothing of a killed process is freed; its memory goes with this one.
  (void)process_.release();
  stage_.scheduler.Kill(owner_);
}

bool Replica::Stop(Milliseconds patience) {
  if (!process_) return true;
  stage_.Tell(name_, "is asked to stop");
  Process* const process = process_.release();
  const Owner owner = owner_;
  const FiberId stopping = stage_.scheduler.Spawn(owner, name_ + " stop", [process] {
    if (process->service) process->Stop();
    // Calls that were given up use it still: it ends by _exit then, as in production.
    const bool is_any_out = std::ranges::any_of(
        process->host_doors, [](const hypervisor::HostThreads* door) { return door->AnyOut(); });
    if (!is_any_out) std::unique_ptr<Process>(process).reset();
  });
  const Instant end = stage_.scheduler.now() + patience;
  while (!stage_.scheduler.HasEnded(stopping) && stage_.scheduler.now() < end) {
    stage_.scheduler.Park(std::min(end, stage_.scheduler.now() + Milliseconds(100)));
  }
  const bool has_ended = stage_.scheduler.HasEnded(stopping);
  // Abandoned calls of a hung host, at least, are still there.
  stage_.scheduler.Kill(owner);
  return has_ended;
}

void Replica::MarkWhatHappened() const {
  if (!process_ || !process_->reconciler) return;
  for (const auto& [name, count] : process_->reconciler->ActionCounts()) {
    if (count > 0) stage_.story.Mark("reconciler." + name);
  }
}

void Replica::SetSkew(Milliseconds skew) {
  skew_ = skew;
  if (process_) process_->clock.SetSkew(skew);
}

void Replica::MaySleep() {
  // A lease lives through one sleep at most, so what is still ordered under it is ordered within
  // half a settle time of its end, and may take effect in the other half (sim/doors).
  const Milliseconds longest = stage_.shape.settle / 2;
  if (!process_ || longest < Milliseconds(2'000) || stage_.scheduler.now() < awake_until_ ||
      !stage_.Happens(FaultKind::kStandby)) {
    return;
  }
  const auto sleep = Milliseconds(stage_.work_chance.Between(1'000, longest.count() - 1'000));
  stage_.Tell(name_, "its computer sleeps for {} ms", sleep.count());
  slept_ += sleep;
  process_->clock.SetSlept(slept_);
  awake_until_ = stage_.scheduler.now() + sleep + 2 * kTtl;
  stage_.scheduler.Pause(owner_, stage_.scheduler.now() + sleep);
}

bool Replica::Post(std::function<void(service::VmService&)> request) {
  if (!process_ || !process_->service) return false;
  stage_.scheduler.Spawn(
      owner_, name_ + " http",
      [&service = *process_->service, request = std::move(request)] { request(service); });
  return true;
}

}  // namespace vmonce::sim
