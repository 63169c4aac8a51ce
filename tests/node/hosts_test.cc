// Two hosts: drained, lost and back again.
#include <gtest/gtest.h>

#include <utility>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using model::HostState;
using model::Observed;
using model::OperationState;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

WorldOptions TwoHosts() {
  WorldOptions options;
  options.hosts = {"a", "b"};
  return options;
}

Fault Down() {
  Fault fault;
  fault.instead = Error{ErrorCode::kUnavailable, "no route"};
  return fault;
}

// Every call to the host fails from now on, as those to a host without power do.
void CutOff(World& world, const std::string& host) {
  for (int call = 0; call <= static_cast<int>(SimulatedCall::kReadConsole); ++call) {
    world.faults(host).Add(static_cast<SimulatedCall>(call), Down(), 1'000'000);
  }
}

std::string HostOf(World& world, const model::VmId& id) {
  const model::Vm vm = world.VmRow(id);
  return vm.host ? vm.host->value : "none";
}

model::Host RowOf(World& world, const std::string& id) {
  const auto rows = world.ledger().Hosts();
  for (const model::Host& row : *rows) {
    if (row.id.value == id) return row;
  }
  return {};
}

// The first VM goes to "a" (ties go to the smaller id).
struct OnA {
  OnA() {
    const service::Outcome created = world.Create("key-1", "web");
    id = created->vms.front().id;
    operation = created->operation->id;
  }
  World world{TwoHosts()};
  model::VmId id;
  model::OperationId operation;
};

TEST(Hosts, ADrainingOneKeepsWhatItHasAndGetsNothingNew) {
  OnA play;
  World& world = play.world;
  world.RunUntilQuiet();
  ASSERT_EQ(HostOf(world, play.id), "a");
  ASSERT_TRUE(world.Declare("a", HostState::kDraining).has_value());
  for (int i = 0; i < 4; ++i) {
    const service::Outcome created =
        world.Create("more-" + std::to_string(i), "more-" + std::to_string(i));
    world.RunUntilQuiet();
    EXPECT_EQ(HostOf(world, created->vms.front().id), "b");
  }
  ASSERT_TRUE(world.Change(Kind::kStop, play.id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(play.id).observed, Observed::kStopped);
  ASSERT_TRUE(world.Change(Kind::kStart, play.id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(play.id).observed, Observed::kRunning);
  world.host("a").PowerOffAll();
  EXPECT_EQ(world.Reconcile("a").restarted, 1);
  world.RunUntilQuiet();
  EXPECT_EQ(world.Audit(), "");
  ASSERT_TRUE(world.Declare("a", HostState::kActive).has_value());
  const service::Outcome back = world.Create("back", "back");
  world.RunUntilQuiet();
  EXPECT_EQ(HostOf(world, back->vms.front().id), "a") << "it has the larger free share";
}

TEST(Hosts, ADrainingOneFinishesTheCreateThatIsUnderWayThere) {
  OnA play;
  World& world = play.world;
  world.faults("a").OnCall(SimulatedCall::kDefine,
                           [&] { (void)world.Declare("a", HostState::kDraining); });
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(play.id).state, VmState::kReady);
  EXPECT_EQ(HostOf(world, play.id), "a");
}

// report 140: a host that does not answer is never swapped: its create waits, and fails at most for
// a passing cause.
TEST(Hosts, AnUnreachableOneIsNotSwappedBeforeSomebodyDeclaresItDead) {
  OnA play;
  World& world = play.world;
  Fault lost;
  lost.lose_reply = true;
  world.faults("a").Add(SimulatedCall::kStart, lost);
  world.faults("a").OnCall(SimulatedCall::kStart, [&] { CutOff(world, "a"); });
  world.RunUntilQuiet(Milliseconds(3'600'000));
  EXPECT_EQ(world.VmRow(play.id).state, VmState::kCreating);
  EXPECT_EQ(world.OperationRow(play.operation).state, OperationState::kVerifying);
  EXPECT_EQ(HostOf(world, play.id), "a");
  EXPECT_TRUE(world.host("b").Domains().empty());

  ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
  EXPECT_EQ(world.Reconcile("a").made_due, 1);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(play.id).state, VmState::kReady);
  EXPECT_EQ(HostOf(world, play.id), "b");
  EXPECT_EQ(world.host("b").Find(play.id)->starts, 1);
  const service::Outcome again = world.Create("key-1", "web");
  EXPECT_EQ(again->vms.front().id, play.id);
}

// What left the dead host is stopped before the host is used again, and removed.
TEST(Hosts, ADeadOneThatComesBackIsSweptBeforeItIsUsed) {
  OnA play;
  World& world = play.world;
  Fault lost;
  lost.lose_reply = true;
  world.faults("a").Add(SimulatedCall::kStart, lost);
  world.faults("a").OnCall(SimulatedCall::kStart, [&] { CutOff(world, "a"); });
  world.RunUntilQuiet(Milliseconds(60'000));
  ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
  world.Reconcile("a");
  world.RunUntilQuiet();
  ASSERT_EQ(HostOf(world, play.id), "b");
  ASSERT_EQ(world.host("a").Find(play.id)->power, Observed::kRunning) << "nobody can stop it";

  world.faults("a").OnCall(SimulatedCall::kConnect, [] {});
  ASSERT_TRUE(world.Declare("a", HostState::kActive).has_value());
  EXPECT_NE(world.Reconcile("a").problem, "") << "it does not answer yet";
  EXPECT_TRUE(RowOf(world, "a").is_returning);
  const service::Outcome meanwhile = world.Create("key-2", "meanwhile");
  world.RunUntilQuiet();
  EXPECT_EQ(HostOf(world, meanwhile->vms.front().id), "b");

  world.faults("a").Clear();
  // One stop fails: it is not used, and the next sweep goes on.
  world.faults("a").Add(SimulatedCall::kDestroy, Down());
  EXPECT_NE(world.Reconcile("a").problem, "");
  EXPECT_TRUE(RowOf(world, "a").is_returning);
  const workflows::ReconcileReport report = world.Reconcile("a");
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.stopped, 1);
  EXPECT_FALSE(report.is_alarmed) << "the ledger knows of this copy";
  EXPECT_FALSE(RowOf(world, "a").is_returning);
  EXPECT_EQ(world.host("a").Find(play.id)->power, Observed::kStopped);
  EXPECT_EQ(world.host("b").Find(play.id)->power, Observed::kRunning);

  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile("a").removed, 1);
  EXPECT_TRUE(world.host("a").Domains().empty());
  const service::Outcome after = world.Create("key-3", "after");
  world.RunUntilQuiet();
  EXPECT_EQ(HostOf(world, after->vms.front().id), "a");
}

TEST(Hosts, OnADeadOneADeleteCompletesAndItsMachineIsStoppedWhenItIsBack) {
  OnA play;
  World& world = play.world;
  world.RunUntilQuiet();
  CutOff(world, "a");
  const service::Outcome deleted = world.Change(Kind::kDelete, play.id);
  world.RunUntilQuiet(Milliseconds(600'000));
  EXPECT_EQ(world.VmRow(play.id).state, VmState::kDeleting) << "nobody knows that it is gone";
  ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
  EXPECT_EQ(world.Reconcile("a").made_due, 1);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(play.id).state, VmState::kDeleted);
  EXPECT_EQ(world.OperationRow(deleted->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.ledger().Usage(model::ProjectId{"default"})->vms, 0);

  world.faults("a").Clear();
  ASSERT_TRUE(world.Declare("a", HostState::kActive).has_value());
  EXPECT_EQ(world.Reconcile("a").stopped, 1);
  EXPECT_EQ(world.host("a").Find(play.id)->power, Observed::kStopped);
  EXPECT_FALSE(RowOf(world, "a").is_returning);
}

// Another process of the same ledger was told so, and this one has not asked the host since: the
// machine is removed there, and not left behind as on a dead host.
TEST(Hosts, OneThatWasCalledBackElsewhereIsNotTakenForDead) {
  OnA made;
  World& world = made.world;
  world.RunUntilQuiet();
  ASSERT_EQ(HostOf(world, made.id), "a");
  ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
  ASSERT_TRUE(world.ledger().SetHostState(model::HostId{"a"}, HostState::kActive).has_value());
  ASSERT_TRUE(world.Change(Kind::kDelete, made.id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(made.id).state, VmState::kDeleted);
  EXPECT_FALSE(world.host("a").Find(made.id).has_value());
  EXPECT_EQ(world.Audit(), "");
}

TEST(Hosts, TheMachinesOfADeadOneAreMissingAndFoundAgain) {
  OnA play;
  World& world = play.world;
  world.RunUntilQuiet();
  CutOff(world, "a");
  ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
  EXPECT_EQ(world.Reconcile("a").missing, 1);
  EXPECT_EQ(world.Reconcile("a").missing, 0);
  EXPECT_EQ(world.VmRow(play.id).state, VmState::kMissing);
  EXPECT_EQ(world.VmRow(play.id).observed, Observed::kUnknown);
  EXPECT_NE(world.StatusOf("a").problem, "");
  const service::Outcome start = world.Change(Kind::kStart, play.id);
  ASSERT_FALSE(start.has_value());
  EXPECT_EQ(start.error().code, "wrong_state");

  // It had no power, and is back.
  world.faults("a").Clear();
  world.host("a").PowerOffAll();
  ASSERT_TRUE(world.Declare("a", HostState::kActive).has_value());
  const workflows::ReconcileReport back = world.Reconcile("a");
  EXPECT_EQ(back.found, 1);
  EXPECT_EQ(back.stopped, 0);
  EXPECT_EQ(back.restarted, 1);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(play.id).observed, Observed::kRunning);
  EXPECT_EQ(world.Audit(), "");
}

// Nothing is done on it, even when it answers.
TEST(Hosts, ADeadOneIsNotTouched) {
  OnA play;
  World& world = play.world;
  world.RunUntilQuiet();
  const hypervisor::SimulatedDomain before = *world.host("a").Find(play.id);
  ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
  const service::Outcome stop = world.ForceStop(play.id);
  world.RunUntilQuiet(Milliseconds(600'000));
  EXPECT_EQ(world.OperationRow(stop->operation->id).state, OperationState::kFailed);
  ASSERT_TRUE(world.Change(Kind::kDelete, play.id).has_value());
  world.RunUntilQuiet();
  for (int sweep = 0; sweep < 4; ++sweep) {
    world.Reconcile("a");
    world.Advance(std::chrono::hours(48));
  }
  EXPECT_EQ(*world.host("a").Find(play.id), before);
  EXPECT_EQ(world.VmRow(play.id).state, VmState::kDeleted);
}

TEST(Hosts, StaysDeadOverARestartOfTheService) {
  OnA play;
  World& world = play.world;
  world.RunUntilQuiet();
  CutOff(world, "a");
  ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
  world.Restart();
  EXPECT_EQ(world.Age(), workflows::LedgerAge::kCurrent) << "it is not waited for";
  const service::Outcome created = world.Create("key-2", "more");
  world.RunUntilQuiet();
  EXPECT_EQ(HostOf(world, created->vms.front().id), "b");
}

TEST(Hosts, WithoutAnotherHostACreateOnADeadOneFailsForAPassingCauseAndLeavesNothing) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.faults().OnCall(SimulatedCall::kDefine, [&] {
    CutOff(world, "local");
    (void)world.Declare("local", HostState::kDead);
  });
  world.RunUntilQuiet(Milliseconds(600'000));
  const model::VmId id = created->vms.front().id;
  EXPECT_EQ(world.VmRow(id).state, VmState::kFailed);
  EXPECT_TRUE(world.OperationRow(created->operation->id).failure->passing);
  EXPECT_EQ(world.ledger().Usage(model::ProjectId{"default"})->vms, 0);
  EXPECT_EQ(RowOf(world, "local").reserved, model::Resources{});
  world.faults().OnCall(SimulatedCall::kConnect, [] {});
  world.faults().Clear();
  ASSERT_TRUE(world.Declare("local", HostState::kActive).has_value());
  EXPECT_EQ(world.Reconcile().problem, "");
  ASSERT_TRUE(world.Create("key-1", "web").has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
}

// The host dies under the create, and the service with it, at every call.
TEST(Hosts, ACreateMovesOnceWhereverTheProcessDies) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      OnA play;
      World& world = play.world;
      bool is_cut = false;
      world.faults("a").OnCall(SimulatedCall::kDefine, [&] {
        if (std::exchange(is_cut, true)) return;
        CutOff(world, "a");
        // Armed when the play begins: what an operator declares is not the process's last call.
        if (!world.Declare("a", HostState::kDead)) return;
        world.crash().Arm(call, when);
      });
      world.RunUntilQuiet();
      EXPECT_EQ(world.VmRow(play.id).state, VmState::kReady) << "call " << call;
      EXPECT_EQ(HostOf(world, play.id), "b") << "call " << call;
      EXPECT_EQ(world.host("b").Find(play.id)->starts, 1) << "call " << call;
      EXPECT_FALSE(world.host("a").Find(play.id).has_value()) << "call " << call;
      EXPECT_EQ(RowOf(world, "a").reserved, model::Resources{});
      EXPECT_EQ(RowOf(world, "b").reserved.vms, 1);
      if (!world.crash().has_fired()) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 10);
}

TEST(Hosts, IsWelcomedBackWhereverTheProcessDies) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      OnA play;
      World& world = play.world;
      world.RunUntilQuiet();
      ASSERT_TRUE(world.Declare("a", HostState::kDead).has_value());
      ASSERT_TRUE(world.Change(Kind::kDelete, play.id).has_value());
      world.RunUntilQuiet();
      world.crash().Arm(call, when);
      for (int sweep = 0; sweep < 2; ++sweep) {
        try {
          if (world.Declare("a", HostState::kActive)) world.Reconcile("a");
        } catch (const Crash&) {
          world.Restart();
        }
      }
      EXPECT_EQ(world.host("a").Find(play.id)->power, Observed::kStopped) << "call " << call;
      EXPECT_FALSE(RowOf(world, "a").is_returning) << "call " << call;
      if (!world.crash().has_fired()) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 3);
}

}  // namespace
}  // namespace vmonce::node
