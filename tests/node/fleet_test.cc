// Hosts prove who they are, and a machine on two of them raises the alarm.
#include "workflows/fleet.h"

#include <gtest/gtest.h>

#include "model/limits.h"
#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using hypervisor::SimulatedDriver;
using hypervisor::SimulatedHost;
using model::HostId;

// One process's fleet over a ledger that outlives it.
struct Hosts {
  explicit Hosts(World& w) : world(w) {}

  std::shared_ptr<SimulatedHost> NewHost() {
    return std::make_shared<SimulatedHost>(
        hypervisor::SimulatedOptions{
            .directory = "",
            .capacity = {.vms = 9, .cpus = 4, .memory_mib = 1'000, .disk_gib = 50}},
        world.clock(), *threads);
  }
  void Add(const std::string& id, std::shared_ptr<SimulatedHost> host,
           workflows::CapacityPlan capacity = {}, Milliseconds settle = Milliseconds(0)) {
    fleet.Add(
        {HostId{id}, "simulated:" + id, capacity},
        std::make_unique<SimulatedDriver>(
            std::move(host), faults, hypervisor::SimulatedDriverOptions{Milliseconds(0), settle},
            world.clock(), *threads));
  }
  model::Host Row(const std::string& id) {
    const auto rows = world.ledger().Hosts();
    for (const model::Host& row : *rows) {
      if (row.id.value == id) return row;
    }
    return {};
  }

  World& world;
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Random> random = NewSystemRandom();
  std::unique_ptr<Logger> logger = NewNullLogger();
  std::shared_ptr<ChosenFaults> faults = std::make_shared<ChosenFaults>();
  workflows::Fleet fleet{world.ledger(), *threads, *logger};
};

TEST(Fleet, MeasuresOnlyWhatTheConfigurationLeavesOut) {
  World world;
  Hosts hosts(world);
  hosts.fleet.Add({HostId{"a"}, "simulated:a", {.memory_mib = 700}},
                  std::make_unique<SimulatedDriver>(hosts.NewHost(), hosts.faults,
                                                    hypervisor::SimulatedDriverOptions{},
                                                    world.clock(), *hosts.threads));
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  const model::Host row = hosts.Row("a");
  EXPECT_EQ(row.capacity.memory_mib, 700);
  EXPECT_EQ(row.capacity.cpus, 4 * model::limits::kCpuOvercommit);
  EXPECT_EQ(row.capacity.disk_gib, 50);
}

TEST(Fleet, RegistersAHostWithTheCapacityThatItTells) {
  World world;
  Hosts hosts(world);
  hosts.Add("a", hosts.NewHost());
  EXPECT_FALSE(hosts.fleet.StatusOf(HostId{"a"}).is_reachable);
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  EXPECT_TRUE(hosts.fleet.StatusOf(HostId{"a"}).is_reachable);
  const model::Host row = hosts.Row("a");
  EXPECT_TRUE(row.is_registered);
  EXPECT_EQ(row.capacity,
            (model::Resources{.vms = 1000, .cpus = 16, .memory_mib = 850, .disk_gib = 50}));
}

TEST(Fleet, TakesTheConfiguredCapacityOverTheTold) {
  World world;
  Hosts hosts(world);
  const model::Resources configured{.vms = 2, .cpus = 2, .memory_mib = 2, .disk_gib = 2};
  hosts.Add("a", hosts.NewHost(), workflows::CapacityPlan::Of(configured));
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  EXPECT_EQ(hosts.Row("a").capacity, configured);
}

TEST(Fleet, TakesWhatIsToldWhereNothingIsConfigured) {
  World world;
  Hosts hosts(world);
  workflows::CapacityPlan plan;
  plan.cpus = 3;
  hosts.Add("a", hosts.NewHost(), plan);
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  EXPECT_EQ(hosts.Row("a").capacity,
            (model::Resources{.vms = 1000, .cpus = 3, .memory_mib = 850, .disk_gib = 50}));
}

TEST(Fleet, TellsSinceWhenAHostAnswersOrNotAndItsLastError) {
  World world;
  Hosts hosts(world);
  hosts.Add("a", hosts.NewHost());
  EXPECT_FALSE(hosts.fleet.StatusOf(HostId{"a"}).since.has_value());
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "no route"};
  hosts.faults->Add(SimulatedCall::kConnect, down, 2);
  const Time first = world.clock().Now();
  for (int again = 0; again < 2; ++again) {
    EXPECT_FALSE(hosts.fleet.Connect(HostId{"a"}).has_value());
    EXPECT_EQ(hosts.fleet.StatusOf(HostId{"a"}).since, first);
    EXPECT_EQ(hosts.fleet.StatusOf(HostId{"a"}).last_error_at, world.clock().Now());
    world.Advance(Milliseconds(1'000));
  }
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  const workflows::HostStatus status = hosts.fleet.StatusOf(HostId{"a"});
  EXPECT_EQ(status.since, world.clock().Now());
  EXPECT_EQ(status.problem, "");
  EXPECT_EQ(status.last_error, "no route");
  EXPECT_EQ(status.last_error_at, first + Milliseconds(1'000));
}

TEST(Fleet, DeclaresAHostThatWasNeverReachedAndNoneThatNobodyKnows) {
  World world;
  Hosts hosts(world);
  hosts.Add("a", hosts.NewHost());
  ASSERT_TRUE(hosts.fleet.SetState(HostId{"a"}, model::HostState::kDead).has_value());
  EXPECT_EQ(hosts.Row("a").state, model::HostState::kDead);
  EXPECT_FALSE(hosts.Row("a").is_registered);
  const Status unknown = hosts.fleet.SetState(HostId{"x"}, model::HostState::kDead);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
}

// The URI leads to another, empty machine now: it is not taken for the registered host.
TEST(Fleet, RegistersAHostOnceAndRequiresItsMarkerFromThenOn) {
  World world;
  {
    Hosts first(world);
    first.Add("a", first.NewHost());
    ASSERT_TRUE(first.fleet.Connect(HostId{"a"}).has_value());
  }
  Hosts second(world);
  second.Add("a", second.NewHost());
  const Status connected = second.fleet.Connect(HostId{"a"});
  ASSERT_FALSE(connected.has_value());
  EXPECT_EQ(connected.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(second.fleet.StatusOf(HostId{"a"}).is_reachable);
}

// Two URIs that show one marker lead to one machine.
TEST(Fleet, RefusesAHostThatShowsAnothersMarker) {
  World world;
  Hosts hosts(world);
  const auto machine = hosts.NewHost();
  hosts.Add("a", machine);
  hosts.Add("b", machine);
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  for (int again = 0; again < 2; ++again) {
    const Status connected = hosts.fleet.Connect(HostId{"b"});
    ASSERT_FALSE(connected.has_value());
    EXPECT_EQ(connected.error().code, ErrorCode::kConflict);
    EXPECT_FALSE(hosts.fleet.StatusOf(HostId{"b"}).is_reachable);
    EXPECT_FALSE(hosts.Row("b").is_registered);
  }
  EXPECT_TRUE(hosts.fleet.StatusOf(HostId{"a"}).is_reachable);
}

TEST(Fleet, FindsOutThatAHostIsGoneAndThatItIsBack) {
  World world;
  Hosts hosts(world);
  hosts.Add("a", hosts.NewHost());
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "no route"};
  hosts.faults->Add(SimulatedCall::kConnect, down);
  EXPECT_FALSE(hosts.fleet.Connect(HostId{"a"}).has_value());
  EXPECT_FALSE(hosts.fleet.StatusOf(HostId{"a"}).is_reachable);
  EXPECT_NE(hosts.fleet.StatusOf(HostId{"a"}).problem, "");
  EXPECT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  EXPECT_TRUE(hosts.fleet.StatusOf(HostId{"a"}).is_reachable);
}

TEST(Fleet, OffersNoHostThatIsNotInTheConfigurationAnyMore) {
  World world;
  Hosts hosts(world);  // The ledger knows "local"; this process does not.
  hosts.Add("a", hosts.NewHost(), {}, Milliseconds(5'000));
  hosts.Add("b", hosts.NewHost(), {}, Milliseconds(30'000));
  ASSERT_TRUE(hosts.fleet.Connect(HostId{"a"}).has_value());
  const auto candidates = hosts.fleet.Candidates();
  ASSERT_TRUE(candidates.has_value());
  ASSERT_EQ(candidates->size(), 2u) << "b has no row before it was reached";
  for (const model::Candidate& candidate : *candidates) {
    EXPECT_EQ(candidate.is_reachable, candidate.host.id.value == "a");
  }
  EXPECT_EQ(hosts.fleet.Find(HostId{"local"}), nullptr);
  EXPECT_EQ(hosts.fleet.SettleTime(), Milliseconds(30'000)) << "the slowest";
}

// An operator's migration, or a URI that points elsewhere now.
TEST(Reconcile, CountsASecondCopyOfAMachineAndLeavesItAlone) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const hypervisor::SimulatedDomain copy = *world.host().Find(created->vms.front().id);

  Hosts hosts(world);
  const auto machine = hosts.NewHost();
  hosts.Add("b", machine);
  machine->Plant(copy);
  const Sealer sealer(std::string(32, 'k'), *hosts.random);
  const workflows::WorkflowParts parts{world.ledger(), hosts.fleet,   sealer,
                                       world.clock(),  *hosts.random, {}};
  workflows::ReconcileVms reconciler(parts, *hosts.logger,
                                     {Milliseconds(0), Milliseconds(0), 2, 3, 10});
  for (int sweep = 0; sweep < 3; ++sweep) {
    const workflows::ReconcileReport report = reconciler.Sweep(HostId{"b"});
    EXPECT_EQ(report.problem, "");
    EXPECT_EQ(report.second_copies, 1);
    EXPECT_TRUE(report.is_alarmed);
    EXPECT_EQ(report.strays, 0);
    world.Advance(std::chrono::hours(48));
  }
  EXPECT_EQ(*machine->Find(copy.id), copy);
  EXPECT_EQ(world.VmRow(copy.id).state, model::VmState::kReady);
}

}  // namespace
}  // namespace vmonce::node
