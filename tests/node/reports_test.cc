// Public fault reports that need nothing but one node, each played as it was met.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using model::OperationState;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

int EventsOf(World& world, const std::string& type) {
  const auto events = world.ledger().Outbox(1'000);
  return static_cast<int>(std::ranges::count(*events, type, &model::Event::type));
}

// report 8: the host's list is old and does not show the machine, while sweeps and a successor of
// the worker that died race for it. It is found by its id, never by a list or a name.
TEST(Reports, AListThatLagsMakesNoSecondMachine) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  const model::VmId id = created->vms.front().id;
  Fault lag;
  lag.list_lag = Milliseconds(2'000);
  lag.omit = {id};
  world.faults().Add(SimulatedCall::kList, lag, 100);
  // Whatever the call, the process dies right after it, and a sweep comes before its successor.
  for (int call = 1; call <= 8; ++call) {
    world.crash().Arm(call, CrashPoint::When::kAfter);
    world.RunUntilQuiet(Milliseconds(0));
    world.Reconcile();
    world.Advance(Milliseconds(15'000));  // The lease of the dead.
  }
  world.RunUntilQuiet();
  world.Reconcile();
  EXPECT_GT(world.faults().fired(), 0);
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
  EXPECT_EQ(world.host().Domains().size(), 1u);
  EXPECT_EQ(world.Audit(), "");
}

// report 43: the ledger fails before anything was accepted. Nothing is remembered of that, and the
// same key is as good as new.
TEST(Reports, AFailureBeforeTheClaimLeavesTheKeyUnused) {
  World world;
  world.crash().Arm(1, CrashPoint::When::kBefore);
  EXPECT_THROW(world.Create("key-1", "web"), Crash);
  ASSERT_TRUE(world.crash().has_fired());
  world.Restart();
  const service::Outcome answer = world.Create("key-1", "web");
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->is_replay);
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Domains().size(), 1u);
  EXPECT_EQ(world.Audit(), "");
}

// report 80: where a machine goes is no part of what a key stands for. The host that was best takes
// no more: the machine is made on the other one, and the same key finds it there.
TEST(Reports, AHostThatTakesNoMoreSendsTheMachineElsewhereUnderTheSameKey) {
  WorldOptions options;
  options.hosts = {"a", "b"};
  World world(options);
  const service::Outcome first = world.Create("key-1", "first");
  ASSERT_TRUE(first.has_value());
  world.RunUntilQuiet();
  const model::HostId best = *world.VmRow(first->vms.front().id).host;
  const service::Outcome created = world.Create("key-2", "second");
  ASSERT_TRUE(created.has_value());
  ASSERT_TRUE(world.Declare(best.value == "a" ? "b" : "a", model::HostState::kDraining));
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  // Without that it would have gone to the emptier one.
  EXPECT_EQ(world.VmRow(id).host, best);
  const service::Outcome again = world.Create("key-2", "second");
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->is_replay);
  EXPECT_EQ(again->vms.front().id, id);
  EXPECT_EQ(world.host(best.value).Domains().size(), 2u);
}

// report 14, report 16: a job that is delivered four times, over a crash, bills one machine.
TEST(Reports, AJobThatIsDeliveredAgainMakesAndTellsOneMachine) {
  World world;
  const service::Outcome first = world.Create("job-7", "web");
  ASSERT_TRUE(first.has_value());
  for (int again = 0; again < 3; ++again) {
    world.RunUntilQuiet();
    world.Restart();
    const service::Outcome answer = world.Create("job-7", "web");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->operation->id, first->operation->id);
  }
  EXPECT_EQ(EventsOf(world, "vm.ready"), 1);
  EXPECT_EQ(EventsOf(world, "operation.accepted"), 1);
  EXPECT_EQ(world.host().Domains().size(), 1u);
}

// report 17: the same play run again under another key meets the name, and is told whose it is.
TEST(Reports, ASecondRunUnderAnotherKeyMeetsTheNameAndMakesNothing) {
  World world;
  const service::Outcome first = world.Create("run-1", "web");
  world.RunUntilQuiet();
  const service::Outcome second = world.Create("run-2", "web");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, "name_taken");
  EXPECT_EQ(second.error().vm, first->vms.front().id);
  EXPECT_EQ(world.host().Domains().size(), 1u);
}

// report 50: a duplicate changes nothing about the operation, whatever its state.
TEST(Reports, ADuplicateNeverChangesTheOperationItMeets) {
  World world;
  const service::Outcome first = world.Create("key-1", "web");
  const model::OperationId id = first->operation->id;
  const auto look_unchanged = [&] {
    const model::Operation before = world.OperationRow(id);
    EXPECT_TRUE(world.Create("key-1", "web").has_value());
    const model::Operation after = world.OperationRow(id);
    EXPECT_EQ(after.state, before.state);
    EXPECT_EQ(after.attempt, before.attempt);
    EXPECT_EQ(after.fence.value, before.fence.value);
    EXPECT_EQ(after.items, before.items);
  };
  look_unchanged();
  world.faults().OnCall(SimulatedCall::kDefine, look_unchanged);
  world.RunUntilQuiet();
  look_unchanged();
  EXPECT_EQ(world.OperationRow(id).state, OperationState::kSucceeded);
}

// report 52: many at once all join the one operation.
TEST(Reports, TenAtOnceAllJoinOneOperation) {
  World world;
  const service::Outcome first = world.Create("key-1", "web");
  for (int i = 0; i < 9; ++i) {
    const service::Outcome answer = world.Create("key-1", "web");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->operation->id, first->operation->id);
    EXPECT_FALSE(model::IsFinished(answer->operation->state));
  }
}

// report 95: an error that comes back although the machine is there. It is adopted, and only the
// index that has none is made again.
TEST(Reports, AnErrorThatComesWithAMachineIsNoReasonToMakeAnother) {
  World world;
  Fault lost;
  lost.lose_reply = true;
  const service::Outcome created = world.Create("fleet", "web", 2);
  const model::VmId with_machine = created->vms.front().id;
  const model::VmId without = created->vms.back().id;
  world.faults().Add(SimulatedCall::kStart, lost, 1, with_machine);
  Fault full;
  full.instead = Error{ErrorCode::kUnavailable, "no memory"};
  world.faults().Add(SimulatedCall::kStart, full, 5, without);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(with_machine).state, VmState::kReady);
  EXPECT_EQ(world.VmRow(without).state, VmState::kFailed);
  ASSERT_TRUE(world.Create("fleet", "web", 2).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(without).state, VmState::kReady);
  EXPECT_EQ(world.host().Find(with_machine)->starts, 1);
  EXPECT_EQ(world.host().Domains().size(), 2u);
  EXPECT_EQ(world.Audit(), "");
}

// report 101: a delete during the create shows as a create that was cancelled, not as an error.
TEST(Reports, ADeleteDuringTheCreateEndsItAsCancelled) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  const model::VmId id = created->vms.front().id;
  world.faults().OnCall(SimulatedCall::kDefine, [&, is_first = true]() mutable {
    if (!std::exchange(is_first, false)) return;
    EXPECT_TRUE(world.Change(Kind::kDelete, id).has_value());
  });
  world.RunUntilQuiet();
  const model::Operation ended = world.OperationRow(created->operation->id);
  EXPECT_EQ(ended.state, OperationState::kCancelled);
  EXPECT_FALSE(ended.failure.has_value());
  EXPECT_EQ(world.Create("key-1", "web")->vms.front().state, VmState::kDeleted);
  EXPECT_EQ(world.Audit(), "");
}

// report 112: what a killed step made is named by the ledger before it is made, so that it is
// found.
TEST(Reports, WhatAKilledStepMadeIsKnownToTheLedger) {
  int played = 0;
  for (int call = 1; played == 0 && call < 50; ++call) {
    World world;
    const service::Outcome created = world.Create("key-1", "web");
    const model::VmId id = created->vms.front().id;
    world.crash().Arm(call, CrashPoint::When::kAfter);
    try {
      world.Step();
    } catch (const Crash&) {
      world.Restart();
    }
    if (world.host().Volumes().empty()) continue;
    ++played;
    EXPECT_EQ(world.VmRow(id).host, model::HostId{"local"});
    EXPECT_FALSE(model::IsFinished(world.OperationRow(created->operation->id).state));
    ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
    world.RunUntilQuiet();
    EXPECT_TRUE(world.host().Volumes().empty());
    EXPECT_EQ(world.Audit(), "");
  }
  EXPECT_EQ(played, 1);
}

}  // namespace
}  // namespace vmonce::node
