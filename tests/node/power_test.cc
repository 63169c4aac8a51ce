// Starting, stopping and rebooting over a whole node.
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using hypervisor::SimulatedDomain;
using model::Observed;
using model::OperationState;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

Fault Instead(ErrorCode code) {
  Fault fault;
  fault.instead = Error{code, "made up"};
  return fault;
}

// A node with one running machine.
struct Running {
  explicit Running(int failures = 0) {
    world.faults().Add(SimulatedCall::kDefine, Instead(ErrorCode::kUnavailable), failures);
    const service::Outcome created = world.Create("key-1", "web");
    world.RunUntilQuiet();
    id = created->vms.front().id;
    world.faults().Clear();
    fired_before = world.faults().fired();
  }
  int fired() { return world.faults().fired() - fired_before; }
  // Removes the machine behind the node's back.
  void Vanish() {
    ASSERT_TRUE(world.host()
                    .ChangeDomain(SimulatedCall::kUndefine, id,
                                  [](std::optional<SimulatedDomain>& domain) -> Status {
                                    domain.reset();
                                    return {};
                                  })
                    .has_value());
  }

  World world;
  model::VmId id;
  int fired_before = 0;
};

TEST(Power, StopsAndStartsTheSameMachine) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  ASSERT_TRUE(world.Change(Kind::kStop, id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).observed, model::Observed::kStopped);
  EXPECT_EQ(world.VmRow(id).desired, model::Desired::kStopped);
  EXPECT_EQ(world.host().Find(id)->power, model::Observed::kStopped);
  ASSERT_TRUE(world.Change(Kind::kStart, id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).observed, model::Observed::kRunning);
  EXPECT_EQ(world.host().Find(id)->starts, 2);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Power, TwiceUnderOneKeyActsOnce) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  const service::Outcome first = world.Change(Kind::kReboot, id, "reboot-1");
  world.RunUntilQuiet();
  const auto reboots = world.host().Effects(SimulatedCall::kReboot);
  const service::Outcome second = world.Change(Kind::kReboot, id, "reboot-1");
  world.RunUntilQuiet();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(second->is_replay);
  EXPECT_EQ(reboots, 1);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kReboot), 1);
}

// The guest does not listen: it is asked every three seconds, since one that still boots misses the
// first asking, and powered off when the grace of twenty is over.
TEST(Power, AsksAGuestNowAndThenAndForcesItAfterTheGrace) {
  Running node;
  World& world = node.world;
  // Asked, and nothing follows.
  world.faults().Add(SimulatedCall::kShutdown, Instead(ErrorCode::kConflict), 100);
  const Time asked = world.clock().Now();
  const service::Outcome stop = world.Change(Kind::kStop, node.id);
  world.RunUntilQuiet(Milliseconds(19'000));
  EXPECT_EQ(world.host().Find(node.id)->power, Observed::kRunning);
  EXPECT_EQ(world.OperationRow(stop->operation->id).state, OperationState::kRunning);
  world.RunUntilQuiet();
  EXPECT_GE(node.fired(), 6);
  EXPECT_LE(node.fired(), 7);
  EXPECT_EQ(world.host().Find(node.id)->power, Observed::kStopped);
  EXPECT_EQ(world.OperationRow(stop->operation->id).state, OperationState::kSucceeded);
  const Milliseconds took = *world.OperationRow(stop->operation->id).finished - asked;
  EXPECT_GE(took, Milliseconds(20'000));
  EXPECT_LT(took, Milliseconds(21'000));
}

TEST(Power, DoesNotBeginTheGraceAnewAfterACrash) {
  Running node;
  World& world = node.world;
  world.faults().Add(SimulatedCall::kShutdown, Instead(ErrorCode::kConflict), 100);
  const Time asked = world.clock().Now();
  const service::Outcome stop = world.Change(Kind::kStop, node.id);
  world.RunUntilQuiet(Milliseconds(10'000));
  ASSERT_GE(node.fired(), 1);
  world.Restart();
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Find(node.id)->power, Observed::kStopped);
  EXPECT_LT(*world.OperationRow(stop->operation->id).finished - asked, Milliseconds(21'000));
}

TEST(Power, ForcesAtOnceWhenAskedTo) {
  Running node;
  World& world = node.world;
  world.faults().Add(SimulatedCall::kShutdown, Instead(ErrorCode::kConflict), 100);
  const service::Outcome stop = world.ForceStop(node.id);
  while (world.Step()) {
  }
  EXPECT_EQ(node.fired(), 0) << "not asked";
  EXPECT_EQ(world.host().Find(node.id)->power, Observed::kStopped);
  EXPECT_EQ(world.OperationRow(stop->operation->id).state, OperationState::kSucceeded);
}

TEST(Power, OfAMachineThatIsNotThereFailsAndMakesNothing) {
  for (const Kind kind : {Kind::kStart, Kind::kStop, Kind::kReboot}) {
    Running node;
    node.Vanish();
    const service::Outcome answer = node.world.Change(kind, node.id);
    node.world.RunUntilQuiet();
    const model::Operation row = node.world.OperationRow(answer->operation->id);
    EXPECT_EQ(row.state, OperationState::kFailed) << static_cast<int>(kind);
    ASSERT_TRUE(row.failure.has_value());
    EXPECT_EQ(row.failure->code, "vm_missing");
    EXPECT_FALSE(row.failure->passing);
    EXPECT_TRUE(node.world.host().Domains().empty());
    EXPECT_EQ(node.world.VmRow(node.id).holder, std::nullopt);
  }
}

TEST(Power, ForcingOffWhatIsNotThereSaysSo) {
  Running node;
  node.Vanish();
  const service::Outcome stop = node.world.ForceStop(node.id);
  node.world.RunUntilQuiet();
  EXPECT_EQ(node.world.OperationRow(stop->operation->id).failure->code, "vm_missing");
  EXPECT_NE(node.world.VmRow(node.id).observed, Observed::kStopped);
}

TEST(Power, IsDeclinedForAMachineThatIsKnownToBeMissing) {
  Running node;
  node.Vanish();
  node.world.Reconcile();
  const service::Outcome start = node.world.Change(Kind::kStart, node.id);
  ASSERT_FALSE(start.has_value());
  EXPECT_EQ(start.error().code, "wrong_state");
}

// Reports of a QEMU that dies at start come as errors that prove nothing: what happened is found by
// looking, and after some tries it has failed.
TEST(Power, FailsWhenAMachineDiesAtEveryStart) {
  Running node;
  World& world = node.world;
  ASSERT_TRUE(world.ForceStop(node.id).has_value());
  world.RunUntilQuiet();
  world.faults().Add(SimulatedCall::kStart, Instead(ErrorCode::kUnknown), 1'000);
  const service::Outcome start = world.Change(Kind::kStart, node.id);
  world.RunUntilQuiet(Milliseconds(600'000));
  const model::Operation row = world.OperationRow(start->operation->id);
  EXPECT_EQ(row.state, OperationState::kFailed);
  EXPECT_TRUE(row.failure && row.failure->passing);
  EXPECT_EQ(node.fired(), 5);
  EXPECT_EQ(world.VmRow(node.id).holder, std::nullopt);
}

TEST(Power, FindsByLookingWhatALostReplyDid) {
  Running node;
  World& world = node.world;
  ASSERT_TRUE(world.ForceStop(node.id).has_value());
  world.RunUntilQuiet();
  Fault lost;
  lost.lose_reply = true;
  world.faults().Add(SimulatedCall::kStart, lost);
  const service::Outcome start = world.Change(Kind::kStart, node.id);
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(start->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Find(node.id)->starts, 2) << "the first, and the one asked for";
  EXPECT_EQ(world.Audit(), "");
}

TEST(Power, RebootsAgainWhenItIsNotKnownWhetherItDid) {
  Running node;
  World& world = node.world;
  world.faults().Add(SimulatedCall::kReboot, Instead(ErrorCode::kUnknown));
  const service::Outcome reboot = world.Change(Kind::kReboot, node.id);
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(reboot->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kReboot), 1);
}

TEST(Power, DoesNotRebootAgainWhatIsRecordedAsDone) {
  Running node;
  World& world = node.world;
  const service::Outcome reboot = world.Change(Kind::kReboot, node.id);
  // Taking it, the hold's record, the reboot and its record; then the process dies.
  world.crash().Arm(4, CrashPoint::When::kAfter);
  world.RunUntilQuiet();
  ASSERT_TRUE(world.crash().has_fired());
  EXPECT_EQ(world.OperationRow(reboot->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kReboot), 1);
}

TEST(Power, RebootsWhatIsOffByStartingIt) {
  Running node;
  World& world = node.world;
  world.host().PowerOffAll();
  const service::Outcome reboot = world.Change(Kind::kReboot, node.id);
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(reboot->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Find(node.id)->power, Observed::kRunning);
}

TEST(Power, NeverTouchesAStrangersMachineOfTheSameId) {
  for (const Kind kind : {Kind::kStart, Kind::kStop, Kind::kReboot}) {
    Running node;
    SimulatedDomain stranger;
    stranger.id = node.id;
    stranger.name = "somebody-elses";
    stranger.power = kind == Kind::kStart ? Observed::kStopped : Observed::kRunning;
    node.world.host().Plant(stranger);
    const service::Outcome answer = node.world.Change(kind, node.id);
    node.world.RunUntilQuiet();
    EXPECT_EQ(node.world.OperationRow(answer->operation->id).failure->code, "conflict");
    EXPECT_EQ(*node.world.host().Find(node.id), stranger);
  }
}

TEST(Power, IsNotHeldUpByTheFencesOfALongCreate) {
  Running node(/*failures=*/4);
  World& world = node.world;
  ASSERT_GE(world.host().Find(node.id)->label->fence.value, 5);
  for (const Kind kind : {Kind::kReboot, Kind::kStop, Kind::kStart}) {
    const Time asked = world.clock().Now();
    const service::Outcome answer = world.Change(kind, node.id);
    world.RunUntilQuiet();
    EXPECT_LT(*world.OperationRow(answer->operation->id).finished - asked, Milliseconds(1'000));
  }
}

TEST(Power, GivesWayToADelete) {
  Running node;
  World& world = node.world;
  world.faults().Add(SimulatedCall::kShutdown, Instead(ErrorCode::kConflict), 100);
  const service::Outcome stop = world.Change(Kind::kStop, node.id);
  world.RunUntilQuiet(Milliseconds(1'000));
  ASSERT_TRUE(world.Change(Kind::kDelete, node.id).has_value());
  world.RunUntilQuiet(Milliseconds(5'000));
  EXPECT_EQ(world.OperationRow(stop->operation->id).state, OperationState::kCancelled);
  EXPECT_EQ(world.VmRow(node.id).state, VmState::kDeleted);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Power, SurvivesACrashAroundEveryPortCall) {
  for (const Kind kind : {Kind::kStop, Kind::kReboot}) {
    int crashes = 0;
    for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
      for (int call = 1;; ++call) {
        Running node;
        World& world = node.world;
        const service::Outcome answer = world.Change(kind, node.id);
        world.crash().Arm(call, when);
        world.RunUntilQuiet();
        EXPECT_EQ(world.OperationRow(answer->operation->id).state, OperationState::kSucceeded)
            << "call " << call;
        EXPECT_EQ(world.Audit(), "") << "call " << call;
        if (!world.crash().has_fired()) break;
        ++crashes;
      }
    }
    EXPECT_GE(crashes, 2 * 5);
  }
}

// The guest was asked to shut down, and whether that arrived is not known. Asked once more it is
// off; a start at once could be undone by the first order, as late as the settle time.
TEST(Power, StartsWhenAnEarlierOrderCanNoLongerArrive) {
  World world({.settle = Milliseconds(30'000)});
  const model::VmId id = world.Create("key-1", "web")->vms.front().id;
  world.RunUntilQuiet();
  world.faults().Add(SimulatedCall::kShutdown, Instead(ErrorCode::kUnknown), 1);
  const Time ordered = world.clock().Now();
  ASSERT_TRUE(world.Change(Kind::kStop, id).has_value());
  world.RunUntilQuiet(Milliseconds(10'000));
  ASSERT_EQ(world.VmRow(id).observed, Observed::kStopped);

  const service::Outcome start = world.Change(Kind::kStart, id);
  world.RunUntilQuiet(Milliseconds(5'000));
  EXPECT_EQ(world.host().Find(id)->power, Observed::kStopped);
  EXPECT_EQ(world.OperationRow(start->operation->id).state, OperationState::kRunning);
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Find(id)->power, Observed::kRunning);
  EXPECT_GE(*world.OperationRow(start->operation->id).finished - ordered, Milliseconds(30'000));
}

}  // namespace
}  // namespace vmonce::node
