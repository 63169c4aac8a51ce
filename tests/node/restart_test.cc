// Machines that their host took down, told as plays over a whole node.
#include <gtest/gtest.h>

#include "model/restart_limits.h"
#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using model::Desired;
using model::Observed;
using model::RestartPolicy;
using model::StopCause;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

model::CreateIntent Named(const std::string& name) {
  model::CreateIntent intent;
  intent.name = name;
  intent.image = "tiny";
  return intent;
}

model::VmId Made(World& world, const model::CreateIntent& intent) {
  const service::Outcome created = world.Create("key-" + intent.name, intent);
  world.RunUntilQuiet();
  return created->vms.front().id;
}

// The machine goes off as the hypervisor would tell it.
void GoOff(World& world, const model::VmId& id, StopCause cause) {
  hypervisor::SimulatedDomain domain = *world.host().Find(id);
  domain.power = Observed::kStopped;
  domain.stopped_by = cause;
  world.host().Plant(domain);
}

std::int64_t Starts(World& world, const model::VmId& id) { return world.host().Find(id)->starts; }

TEST(Restart, BringsBackWhatShouldRunAfterItsHostWentDown) {
  World world;
  const model::VmId web = Made(world, Named("web"));
  const model::VmId stopped = Made(world, Named("stopped"));
  model::CreateIntent intent = Named("never");
  intent.restart = RestartPolicy::kNever;
  const model::VmId never = Made(world, intent);
  ASSERT_TRUE(world.Change(Kind::kStop, stopped).has_value());
  world.RunUntilQuiet();

  world.host().PowerOffAll();
  const workflows::ReconcileReport report = world.Reconcile();
  EXPECT_EQ(report.restarted, 1);
  EXPECT_EQ(Starts(world, web), 1) << "a sweep starts nothing itself";
  world.RunUntilQuiet();
  EXPECT_EQ(Starts(world, web), 2);
  EXPECT_EQ(world.VmRow(web).observed, Observed::kRunning);
  EXPECT_EQ(world.VmRow(web).stopped_by, StopCause::kNone);
  EXPECT_EQ(world.VmRow(web).restarts, 1);
  EXPECT_EQ(world.host().Find(stopped)->power, Observed::kStopped);
  EXPECT_EQ(world.VmRow(stopped).stopped_by, StopCause::kPerson);
  EXPECT_EQ(world.host().Find(never)->power, Observed::kStopped);
  EXPECT_EQ(world.VmRow(never).observed, Observed::kStopped);
  EXPECT_EQ(world.VmRow(never).stopped_by, StopCause::kHost);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kDefine), 3) << "the same machines";
  EXPECT_EQ(world.Audit(), "");
}

TEST(Restart, LeavesOffWhatTheGuestOrAPersonStopped) {
  for (const StopCause cause : {StopCause::kGuest, StopCause::kPerson}) {
    World world;
    const model::VmId id = Made(world, Named("web"));
    GoOff(world, id, cause);
    EXPECT_EQ(world.Reconcile().restarted, 0) << ToString(cause);
    EXPECT_EQ(world.VmRow(id).stopped_by, cause);
    EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
    // Then its host is restarted, too, and forgets why the machine was off.
    GoOff(world, id, StopCause::kHost);
    EXPECT_EQ(world.Reconcile().restarted, 0) << ToString(cause);
    world.RunUntilQuiet();
    EXPECT_EQ(world.host().Find(id)->power, Observed::kStopped);
    // Whoever wants it starts it.
    ASSERT_TRUE(world.Change(Kind::kStart, id).has_value());
    world.RunUntilQuiet();
    EXPECT_EQ(world.VmRow(id).observed, Observed::kRunning);
  }
}

TEST(Restart, IsBegunOnceHoweverOftenItIsSeen) {
  World world;
  const model::VmId id = Made(world, Named("web"));
  world.host().PowerOffAll();
  int restarted = 0;
  for (int sweep = 0; sweep < 5; ++sweep) restarted += world.Reconcile().restarted;
  EXPECT_EQ(restarted, 1);
  // And while it is being done.
  world.faults().OnCall(SimulatedCall::kStart, [&] { restarted += world.Reconcile().restarted; });
  world.RunUntilQuiet();
  EXPECT_EQ(restarted, 1);
  EXPECT_EQ(Starts(world, id), 2);
  EXPECT_EQ(world.VmRow(id).restarts, 1);
}

TEST(Restart, IsDoneOnceWhereverTheProcessDies) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      World world;
      const model::VmId id = Made(world, Named("web"));
      world.host().PowerOffAll();
      world.crash().Arm(call, when);
      try {
        world.Reconcile();
      } catch (const Crash&) {
        world.Restart();
      }
      world.RunUntilQuiet();
      const bool has_fired = world.crash().has_fired();
      world.crash().Arm(1'000'000, when);  // No more of them.
      for (int sweep = 0; sweep < 2; ++sweep) {
        world.Reconcile();
        world.RunUntilQuiet();
      }
      EXPECT_EQ(Starts(world, id), 2) << "call " << call;
      EXPECT_EQ(world.VmRow(id).observed, Observed::kRunning) << "call " << call;
      EXPECT_EQ(world.VmRow(id).restarts, 1) << "call " << call;
      EXPECT_EQ(world.Audit(), "") << "call " << call;
      if (!has_fired) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 6);
}

TEST(Restart, GivesUpOnAMachineThatGoesDownEachTimeAndSaysSo) {
  World world;
  const model::VmId id = Made(world, Named("web"));
  for (int sweep = 0; sweep < 100; ++sweep) {
    world.host().PowerOffAll();
    world.Reconcile();
    world.RunUntilQuiet(Milliseconds(0));
    world.Advance(Milliseconds(30'000));
  }
  world.host().PowerOffAll();
  EXPECT_EQ(world.Reconcile().stuck, 1);
  EXPECT_EQ(Starts(world, id), 1 + model::limits::kRestartsInARow);
  // A person starts it, and the story begins anew.
  ASSERT_TRUE(world.Change(Kind::kStart, id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).restarts, 0);
  world.host().PowerOffAll();
  EXPECT_EQ(world.Reconcile().restarted, 1);
}

TEST(Restart, CountsAStartThatFailsAsOneOfThem) {
  World world;
  const model::VmId id = Made(world, Named("web"));
  world.host().PowerOffAll();
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "no memory"};
  world.faults().Add(SimulatedCall::kStart, down, 1'000);
  for (int sweep = 0; sweep < 100; ++sweep) {
    world.Reconcile();
    world.RunUntilQuiet();
    world.Advance(Milliseconds(30'000));
  }
  EXPECT_EQ(world.VmRow(id).restarts, model::limits::kRestartsInARow);
  EXPECT_EQ(world.VmRow(id).observed, Observed::kStopped);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Restart, GivesWayToAPersonWhoWantsItOffMeanwhile) {
  World world;
  const model::VmId id = Made(world, Named("web"));
  world.host().PowerOffAll();
  ASSERT_EQ(world.Reconcile().restarted, 1);
  ASSERT_TRUE(world.Update(id, Desired::kStopped, std::nullopt).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Find(id)->power, Observed::kStopped);
  EXPECT_EQ(world.VmRow(id).observed, Observed::kStopped);
  EXPECT_EQ(Starts(world, id), 1);
}

TEST(Restart, IsLeftToTheDeleteOfItsVm) {
  World world;
  const model::VmId id = Made(world, Named("web"));
  world.host().PowerOffAll();
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  EXPECT_EQ(world.Reconcile().restarted, 0);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted);
  EXPECT_EQ(world.VmRow(id).desired, Desired::kStopped);
}

TEST(Desired, StoppedMakesAMachineThatIsReadyAndOff) {
  World world;
  model::CreateIntent intent = Named("web");
  intent.desired = Desired::kStopped;
  const model::VmId id = Made(world, intent);
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
  EXPECT_EQ(world.VmRow(id).observed, Observed::kStopped);
  EXPECT_EQ(world.host().Find(id)->power, Observed::kStopped);
  EXPECT_EQ(Starts(world, id), 0);
  EXPECT_EQ(world.Audit(), "");
  EXPECT_EQ(world.Reconcile().restarted, 0);
  ASSERT_TRUE(world.Change(Kind::kStart, id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(Starts(world, id), 1);
}

TEST(Desired, StoppedIsMadeOnceWherverTheProcessDies) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      World world;
      model::CreateIntent intent = Named("web");
      intent.desired = Desired::kStopped;
      const service::Outcome created = world.Create("key-1", intent);
      world.crash().Arm(call, when);
      world.RunUntilQuiet();
      const model::VmId id = created->vms.front().id;
      EXPECT_EQ(world.VmRow(id).state, VmState::kReady) << "call " << call;
      EXPECT_EQ(world.VmRow(id).observed, Observed::kStopped) << "call " << call;
      EXPECT_EQ(Starts(world, id), 0) << "call " << call;
      EXPECT_EQ(world.Audit(), "") << "call " << call;
      if (!world.crash().has_fired()) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 8);
}

TEST(Desired, IsPartOfWhatAKeyStandsFor) {
  World world;
  ASSERT_TRUE(world.Create("key-1", Named("web")).has_value());
  model::CreateIntent other = Named("web");
  other.desired = Desired::kStopped;
  const service::Outcome answer = world.Create("key-1", other);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, "idempotency_key_reused");
}

// A guest that was asked to shut down may follow late: the start that came after the stop finds it
// off, and starts it.
TEST(Desired, AStartAfterAStopThatIsUnderWayStartsItAgain) {
  World world;
  const model::VmId id = Made(world, Named("web"));
  Fault deaf;
  deaf.instead = Error{ErrorCode::kConflict, "asked, and nothing follows"};
  world.faults().Add(SimulatedCall::kShutdown, deaf, 100);
  ASSERT_TRUE(world.Change(Kind::kStop, id).has_value());
  world.RunUntilQuiet(Milliseconds(5'000));
  ASSERT_TRUE(world.Change(Kind::kStart, id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Find(id)->power, Observed::kRunning);
  EXPECT_EQ(world.VmRow(id).observed, Observed::kRunning);
  EXPECT_EQ(Starts(world, id), 2);
}

// Report 142: starts and stops, one after the other and at once: the last one wins, and the machine
// is never doubled.
TEST(Desired, TheLastOfManyRequestsWins) {
  for (const Desired last : {Desired::kRunning, Desired::kStopped}) {
    World world;
    const model::VmId id = Made(world, Named("web"));
    for (int i = 0; i < 20; ++i) {
      const Desired other = last == Desired::kRunning ? Desired::kStopped : Desired::kRunning;
      ASSERT_TRUE(world.Update(id, i % 2 == 0 ? other : last, std::nullopt).has_value());
    }
    world.RunUntilQuiet(Milliseconds(600'000));
    const Observed wanted = last == Desired::kRunning ? Observed::kRunning : Observed::kStopped;
    EXPECT_EQ(world.host().Find(id)->power, wanted);
    EXPECT_EQ(world.VmRow(id).observed, wanted);
    EXPECT_EQ(world.host().Domains().size(), 1u);
    EXPECT_EQ(world.Audit(), "");
  }
}

}  // namespace
}  // namespace vmonce::node
