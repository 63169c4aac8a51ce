// Deletes, and deletes that cross a create.
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using model::OperationState;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

TEST(Delete, LeavesNothing) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const service::Outcome deleted = world.Change(Kind::kDelete, created->vms.front().id);
  ASSERT_TRUE(deleted.has_value());
  EXPECT_EQ(deleted->vms.front().state, VmState::kDeleting);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kDeleted);
  EXPECT_TRUE(world.host().Domains().empty());
  EXPECT_EQ(world.Audit(), "");
}

TEST(Delete, TwiceIsOnce) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  const service::Outcome first = world.Change(Kind::kDelete, id);
  const service::Outcome second = world.Change(Kind::kDelete, id);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->operation->id, first->operation->id);
  world.RunUntilQuiet();
  const service::Outcome third = world.Change(Kind::kDelete, id);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->vms.front().state, VmState::kDeleted);
}

TEST(Delete, SurvivesACrashAroundEveryPortCall) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      World world;
      const service::Outcome created = world.Create("key-1", "web");
      world.RunUntilQuiet();
      ASSERT_TRUE(world.Change(Kind::kDelete, created->vms.front().id).has_value());
      world.crash().Arm(call, when);
      world.RunUntilQuiet();
      EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kDeleted) << "call " << call;
      EXPECT_EQ(world.Audit(), "") << "call " << call;
      if (!world.crash().has_fired()) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 13);
}

// Reports 98, 100 and 101: a delete that crosses a create anywhere ends with nothing, and the
// create as cancelled.
TEST(Delete, DuringACreateAtEveryStepEndsWithNothing) {
  constexpr SimulatedCall kCalls[] = {SimulatedCall::kCreateDisk, SimulatedCall::kCreateSeed,
                                      SimulatedCall::kDefine, SimulatedCall::kStart};
  for (const SimulatedCall call : kCalls) {
    World world;
    const service::Outcome created = world.Create("key-1", "web");
    const model::VmId id = created->vms.front().id;
    bool has_deleted = false;
    world.faults().OnCall(call, [&] {
      if (has_deleted) return;
      has_deleted = true;
      ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
    });
    world.RunUntilQuiet();
    EXPECT_TRUE(has_deleted) << ToString(call);
    EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted) << ToString(call);
    EXPECT_EQ(world.OperationRow(created->operation->id).state, OperationState::kCancelled)
        << ToString(call);
    EXPECT_EQ(world.Audit(), "") << ToString(call);
    // Never resurrected.
    const service::Outcome again = world.Create("key-1", "web");
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->vms.front().state, VmState::kDeleted);
    world.RunUntilQuiet();
    EXPECT_TRUE(world.host().Domains().empty());
  }
}

TEST(Delete, BeforeTheCreateBeganEndsWithNothing) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  ASSERT_TRUE(world.Change(Kind::kDelete, created->vms.front().id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(created->operation->id).state, OperationState::kCancelled);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kDefine), 0);
  EXPECT_EQ(world.Audit(), "");
}

// An earlier call took effect late, behind the delete's back: what it brought back is found and
// taken away again.
TEST(Delete, RemovesAMachineThatALateEffectBroughtBack) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  const hypervisor::SimulatedDomain domain = *world.host().Find(id);
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  int looks = 0;
  world.faults().OnCall(SimulatedCall::kLook, [&] {
    if (++looks == 1) world.host().Plant(domain);
  });
  world.RunUntilQuiet();
  EXPECT_GE(looks, 2);
  EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted);
  EXPECT_EQ(world.Audit(), "");
}

// An order whose answer was lost took effect behind the removal's back; the end of the removal was
// held up beyond the settle time, so that nothing had to be waited for there.
TEST(Delete, RemovesWhatCameLateAlsoWhenItEndsLater) {
  World world({.settle = Milliseconds(30'000)});
  Fault lost;
  lost.lose_reply = true;
  world.faults().Add(SimulatedCall::kCreateSeed, lost);
  const service::Outcome created = world.Create("key-1", "web");
  const model::VmId id = created->vms.front().id;
  world.RunUntilQuiet();
  ASSERT_EQ(world.VmRow(id).state, VmState::kReady);
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "down"};
  world.faults().Add(SimulatedCall::kDeleteDisk, down, 20);
  bool has_come = false;
  world.faults().OnCall(SimulatedCall::kDeleteDisk, [&] {
    if (std::exchange(has_come, true)) return;
    const std::string seed = model::SeedName(world.ledger().Id(), id);
    EXPECT_TRUE(world.host().AddVolume(SimulatedCall::kCreateSeed, id, seed,
                                       [](const auto&) { return Status(); }));
  });
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet(Milliseconds(600'000));
  EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted);
  EXPECT_EQ(world.Audit(), "");
}

// The create's worker died with a call out: nothing is believed gone before the settle time.
TEST(Delete, WaitsForTheSettleTimeAfterACrash) {
  World world({.settle = Milliseconds(30'000)});
  const service::Outcome created = world.Create("key-1", "web");
  const model::VmId id = created->vms.front().id;
  world.crash().Arm(6, CrashPoint::When::kBefore);
  EXPECT_THROW(while (world.Step()){}, Crash);
  world.Restart();
  const Time died = world.clock().Now();
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet(Milliseconds(600'000));
  EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted);
  EXPECT_GE(*world.VmRow(id).deleted - died, Milliseconds(30'000));
  EXPECT_EQ(world.Audit(), "");
}

// The create's worker died with a call out, the next one found its own way to the end: the call may
// still take effect after the machine was told as ready.
TEST(Delete, WaitsForACallThatTheCreateOfADeadProcessLeftOut) {
  World world({.settle = Milliseconds(30'000)});
  const service::Outcome created = world.Create("key-1", "web");
  const model::VmId id = created->vms.front().id;
  world.crash().Arm(6, CrashPoint::When::kBefore);
  EXPECT_THROW(while (world.Step()){}, Crash);
  world.Restart();
  world.RunUntilQuiet(Milliseconds(20'000));
  ASSERT_EQ(world.VmRow(id).state, VmState::kReady);
  const Time taken_over = world.clock().Now();
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet(Milliseconds(600'000));
  EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted);
  EXPECT_GE(*world.VmRow(id).deleted - taken_over, Milliseconds(30'000));
  EXPECT_EQ(world.Audit(), "");
}

// Two operations never act on one machine together, whichever attempt it is.
TEST(Delete, WaitsForTheSecondAttemptOfACreateToLetGo) {
  World world;
  Fault refused;
  refused.instead = Error{ErrorCode::kUnavailable, "down"};
  world.faults().Add(SimulatedCall::kStart, refused, 5);
  const service::Outcome created = world.Create("key-1", "web");
  const model::VmId id = created->vms.front().id;
  world.RunUntilQuiet();
  ASSERT_EQ(world.VmRow(id).state, VmState::kFailed);
  int destroys = 0;
  int destroys_during_define = -1;
  world.faults().OnCall(SimulatedCall::kDefine, [&] {
    if (destroys_during_define >= 0) return;
    ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
    destroys = world.host().Effects(SimulatedCall::kDestroy);
    while (world.Step()) {
    }
    destroys_during_define = world.host().Effects(SimulatedCall::kDestroy) - destroys;
    EXPECT_EQ(world.VmRow(id).state, VmState::kDeleting);
  });
  ASSERT_TRUE(world.Create("key-1", "web").has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(destroys_during_define, 0);
  EXPECT_EQ(world.OperationRow(created->operation->id).state, OperationState::kCancelled);
  EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted);
  EXPECT_EQ(world.Audit(), "");
}

// Fences start anew with each operation, and the label is the machine's: a later operation is above
// every take-over.
TEST(Delete, IsNotFencedOffByATakenOverCreate) {
  World world;
  // Each backoff, too, is another taking.
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "down"};
  world.faults().Add(SimulatedCall::kDefine, down, 4);
  const service::Outcome created = world.Create("key-1", "web");
  world.crash().Arm(2, CrashPoint::When::kAfter);
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  ASSERT_EQ(world.VmRow(id).state, VmState::kReady);
  ASSERT_GT(world.OperationRow(created->operation->id).fence.value, 1);
  const Time asked = world.clock().Now();
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).state, VmState::kDeleted);
  EXPECT_LT(*world.VmRow(id).deleted - asked, Milliseconds(1'000));
}

TEST(Delete, NeverGivesUpAndTellsWhenItIsStuck) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "down"};
  world.faults().Add(SimulatedCall::kDestroy, down, 20);
  const service::Outcome deleted = world.Change(Kind::kDelete, created->vms.front().id);
  for (int turn = 0; turn < 12; ++turn) {
    world.Step();
    world.Advance(Milliseconds(30'000));
  }
  EXPECT_TRUE(world.OperationRow(deleted->operation->id).is_stuck);
  world.RunUntilQuiet(Milliseconds(3'600'000));
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kDeleted);
  EXPECT_FALSE(world.OperationRow(deleted->operation->id).is_stuck);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Delete, LeavesAStrangersMachineOfTheSameIdAlone) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  hypervisor::SimulatedDomain stranger;
  stranger.id = created->vms.front().id;
  stranger.name = "somebody-elses";
  stranger.power = model::Observed::kRunning;
  world.host().Plant(stranger);
  ASSERT_TRUE(world.Change(Kind::kDelete, stranger.id).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(stranger.id).state, VmState::kDeleted);
  EXPECT_EQ(*world.host().Find(stranger.id), stranger);
}

TEST(Cancel, OfABatchInTheMiddleDeletesWhatIsThereAndWhatIsToCome) {
  World world;
  const service::Outcome created = world.Create("key-1", "web", 3);
  int disks = 0;
  world.faults().OnCall(SimulatedCall::kCreateDisk, [&] {
    if (++disks != 2) return;
    ASSERT_TRUE(world.Cancel(created->operation->id).has_value());
  });
  world.RunUntilQuiet();
  EXPECT_GE(disks, 2);
  for (const model::Vm& vm : created->vms) {
    EXPECT_EQ(world.VmRow(vm.id).state, VmState::kDeleted);
  }
  EXPECT_TRUE(world.host().Domains().empty());
  EXPECT_EQ(world.Audit(), "");
}

}  // namespace
}  // namespace vmonce::node
