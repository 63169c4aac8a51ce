// Creates, told as plays: what a user and a host see under every fault one node can meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using model::OperationState;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

Fault Instead(ErrorCode code, std::string detail = "made up") {
  Fault fault;
  fault.instead = Error{code, std::move(detail)};
  return fault;
}

Fault LostReply() {
  Fault fault;
  fault.lose_reply = true;
  return fault;
}

constexpr SimulatedCall kForwardCalls[] = {SimulatedCall::kCreateDisk, SimulatedCall::kCreateSeed,
                                           SimulatedCall::kDefine, SimulatedCall::kStart};

TEST(Create, EndsReadyWithOneDomainAndOneDisk) {
  World world;
  const service::Outcome answer = world.Create("key-1", "web");
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->is_replay);
  EXPECT_EQ(answer->operation->state, OperationState::kAccepted);
  world.RunUntilQuiet();
  const model::Vm vm = world.VmRow(answer->vms.front().id);
  EXPECT_EQ(vm.state, VmState::kReady);
  EXPECT_EQ(world.host().Find(vm.id)->power, model::Observed::kRunning);
  EXPECT_EQ(world.host().Find(vm.id)->starts, 1);
  EXPECT_TRUE(world.OperationRow(answer->operation->id).sealed_secrets.empty());
  EXPECT_EQ(world.Audit(), "");
}

TEST(Create, AnswersEveryRetryWithTheSameMachine) {
  World world;
  const service::Outcome first = world.Create("key-1", "web");
  const service::Outcome early = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const service::Outcome late = world.Create("key-1", "web");
  ASSERT_TRUE(first && early && late);
  EXPECT_TRUE(early->is_replay);
  EXPECT_TRUE(late->is_replay);
  EXPECT_EQ(early->operation->id, first->operation->id);
  EXPECT_EQ(late->vms.front().id, first->vms.front().id);
  EXPECT_EQ(late->operation->state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kDefine), 1);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Create, RefusesTheKeyForAnotherBodyAndNamesTheDifference) {
  World world;
  const service::Outcome first = world.Create("key-1", "web");
  const service::Outcome other = world.Create("key-1", "db");
  ASSERT_TRUE(first.has_value());
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, "idempotency_key_reused");
  EXPECT_THAT(other.error().differing, testing::ElementsAre("/name"));
  EXPECT_EQ(other.error().operation, first->operation->id);
}

// Reports 1, 2, 4 and 109: killed before and after every port call of a create, a node goes on to
// one machine.
int CrashesAroundEveryPortCall(Milliseconds record_within) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      World world({.record_within = record_within});
      const service::Outcome answer = world.Create("key-1", "web");
      EXPECT_TRUE(answer.has_value());
      world.crash().Arm(call, when);
      world.RunUntilQuiet();
      const bool fired = world.crash().has_fired();
      const service::Outcome again = world.Create("key-1", "web");
      EXPECT_TRUE(again.has_value());
      if (!answer || !again) return crashes;
      EXPECT_EQ(again->operation->state, OperationState::kSucceeded) << "call " << call;
      EXPECT_EQ(again->vms.front().id, answer->vms.front().id);
      EXPECT_EQ(world.host().Find(answer->vms.front().id)->starts, 1) << "call " << call;
      EXPECT_EQ(world.Audit(), "") << "call " << call;
      if (!fired) break;
      ++crashes;
    }
  }
  return crashes;
}

TEST(Create, SurvivesACrashAroundEveryPortCall) {
  // Taking it, six steps, six records, at least: a loop that stops early would prove nothing.
  EXPECT_GE(CrashesAroundEveryPortCall(Milliseconds(0)), 2 * 11);
}

TEST(Create, SurvivesACrashAroundEveryPortCallWhenRecordsOfProgressRideTogether) {
  // Taking it, four effects, two records.
  EXPECT_GE(CrashesAroundEveryPortCall(Milliseconds(10)), 2 * 7);
}

// Report 2: the process dies after every single effect, ten times in a row.
TEST(Create, SurvivesTenCrashesInARow) {
  World world({.record_within = Milliseconds(10)});
  const service::Outcome answer = world.Create("key-1", "web");
  for (int crash = 0; crash < 10; ++crash) {
    world.crash().Arm(2 + crash % 4, CrashPoint::When::kAfter);
    world.RunUntilQuiet();
  }
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(answer->vms.front().id).state, VmState::kReady);
  EXPECT_EQ(world.Audit(), "");
}

// Reports 4 and 107: the effect happened, its answer was lost.
TEST(Create, AdoptsWhatALostReplyLeftBehind) {
  for (const SimulatedCall call : kForwardCalls) {
    World world;
    world.faults().Add(call, LostReply());
    const service::Outcome answer = world.Create("key-1", "web");
    world.RunUntilQuiet();
    EXPECT_EQ(world.faults().fired(), 1) << ToString(call);
    EXPECT_EQ(world.VmRow(answer->vms.front().id).state, VmState::kReady) << ToString(call);
    EXPECT_EQ(world.host().Find(answer->vms.front().id)->starts, 1) << ToString(call);
    EXPECT_EQ(world.Audit(), "") << ToString(call);
  }
}

TEST(Create, IsVerifyingWhileAnOutcomeIsUnknown) {
  World world;
  world.faults().Add(SimulatedCall::kStart, LostReply());
  world.faults().Add(SimulatedCall::kLook, Instead(ErrorCode::kUnavailable), 3);
  const service::Outcome answer = world.Create("key-1", "web");
  while (world.Step()) {
  }
  EXPECT_EQ(world.OperationRow(answer->operation->id).state, OperationState::kVerifying);
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(answer->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Find(answer->vms.front().id)->starts, 1);
}

// Report 34: as long as nobody can look, nothing is tried again.
TEST(Create, TriesNothingAgainWhileItCannotLook) {
  World world;
  world.faults().Add(SimulatedCall::kStart, LostReply());
  world.faults().Add(SimulatedCall::kLook, Instead(ErrorCode::kUnavailable), 1'000'000);
  const service::Outcome answer = world.Create("key-1", "web");
  const Time end = world.clock().Now() + Milliseconds(600'000);
  while (world.clock().Now() < end) {
    world.Step();
    world.Advance(Milliseconds(1'000));
  }
  EXPECT_EQ(world.host().Effects(SimulatedCall::kStart), 1);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kDefine), 1);
  const model::Operation operation = world.OperationRow(answer->operation->id);
  EXPECT_EQ(operation.state, OperationState::kVerifying);
  EXPECT_TRUE(operation.is_stuck);
  world.faults().Clear();
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(answer->vms.front().id).state, VmState::kReady);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Create, UnwindsFromEachStepAndLeavesNothing) {
  for (const SimulatedCall call : kForwardCalls) {
    World world;
    world.faults().Add(call, Instead(ErrorCode::kRefused, "no such machine type"));
    const service::Outcome answer = world.Create("key-1", "web");
    world.RunUntilQuiet();
    EXPECT_EQ(world.faults().fired(), 1) << ToString(call);
    EXPECT_EQ(world.VmRow(answer->vms.front().id).state, VmState::kFailed) << ToString(call);
    EXPECT_EQ(world.Audit(), "") << ToString(call);
    const service::Outcome again = world.Create("key-1", "web");
    ASSERT_FALSE(again.has_value()) << ToString(call);
    EXPECT_EQ(again.error().code, "hypervisor_refused");
    EXPECT_EQ(again.error().retry_same_key, false);
    EXPECT_EQ(world.host().Effects(call), 0);
  }
}

TEST(Create, SurvivesACrashAroundEveryPortCallOfAnUndo) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      World world;
      world.faults().Add(SimulatedCall::kStart, Instead(ErrorCode::kRefused), 100);
      const service::Outcome answer = world.Create("key-1", "web");
      world.crash().Arm(call, when);
      world.RunUntilQuiet();
      EXPECT_EQ(world.VmRow(answer->vms.front().id).state, VmState::kFailed) << "call " << call;
      EXPECT_EQ(world.Audit(), "") << "call " << call;
      if (!world.crash().has_fired()) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 18);
}

// Report 40: a passing failure is never frozen; what the answer says of retrying is what happens.
TEST(Create, StartsANewAttemptOfTheSameMachineAfterAPassingFailure) {
  World world;
  world.faults().Add(SimulatedCall::kDefine, Instead(ErrorCode::kUnavailable, "host down"), 5);
  const service::Outcome first = world.Create("key-1", "web");
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(first->operation->id).state, OperationState::kFailed);
  EXPECT_EQ(world.Audit(), "");

  const service::Outcome again = world.Create("key-1", "web");
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->is_replay);
  EXPECT_EQ(again->operation->id, first->operation->id);
  EXPECT_EQ(again->operation->attempt, 2);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(first->vms.front().id).state, VmState::kReady);
  EXPECT_EQ(world.Audit(), "");
}

// A person may put the file back: the same key then makes the machine.
TEST(Create, PassesOverAMissingFileOfItsImageOnceItIsBack) {
  for (const SimulatedCall call : {SimulatedCall::kCreateDisk, SimulatedCall::kDefine}) {
    World world;
    world.faults().Add(call, Instead(ErrorCode::kNotFound, "/images/tiny.qcow2"), 5);
    const auto first = world.Create("key", "web");
    world.RunUntilQuiet();
    EXPECT_EQ(world.faults().fired(), 5) << ToString(call);
    const auto failed = world.OperationRow(first->operation->id);
    ASSERT_TRUE(failed.failure) << ToString(call);
    EXPECT_EQ(failed.failure->code, "image_unavailable");
    EXPECT_TRUE(failed.failure->passing);
    EXPECT_EQ(world.Audit(), "");
    const auto again = world.Create("key", "web");
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(again->vms.front().id, first->vms.front().id);
    world.RunUntilQuiet();
    EXPECT_EQ(world.VmRow(first->vms.front().id).state, model::VmState::kReady);
    EXPECT_EQ(world.Audit(), "");
  }
}

TEST(Create, KeepsAFailedRecordWhenTheNameIsTakenMeanwhile) {
  World world;
  world.faults().Add(SimulatedCall::kDefine, Instead(ErrorCode::kUnavailable), 5);
  const service::Outcome first = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const service::Outcome other = world.Create("key-2", "web");
  ASSERT_TRUE(other.has_value());
  const service::Outcome again = world.Create("key-1", "web");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, "name_taken");
  EXPECT_EQ(world.OperationRow(first->operation->id).state, OperationState::kFailed);
}

TEST(Create, AnswersAFailedVmThatTheUserDeletedAsDeleted) {
  World world;
  world.faults().Add(SimulatedCall::kDefine, Instead(ErrorCode::kUnavailable), 5);
  const service::Outcome first = world.Create("key-1", "web");
  world.RunUntilQuiet();
  ASSERT_TRUE(world.Change(Kind::kDelete, first->vms.front().id).has_value());
  world.RunUntilQuiet();
  const service::Outcome again = world.Create("key-1", "web");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->vms.front().state, VmState::kDeleted);
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Find(first->vms.front().id), std::nullopt);
  EXPECT_EQ(world.Audit(), "");
}

// Report 44: a refusal before acceptance does not consume the key.
TEST(Create, KeepsTheKeyUsableWhenTheQuotaIsFull) {
  World world({.quota = {.vms = 0, .cpus = 10, .memory_mib = 10'000, .disk_gib = 10}});
  const service::Outcome refused = world.Create("key-1", "web");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "quota_exceeded");
  world.SetQuota({.vms = 1, .cpus = 10, .memory_mib = 10'000, .disk_gib = 10});
  const service::Outcome accepted = world.Create("key-1", "web");
  ASSERT_TRUE(accepted.has_value());
  EXPECT_FALSE(accepted->is_replay);
}

// Report 121: a name conflict does not consume the key, and never hides what the key made.
TEST(Create, KeepsTheKeyUsableWhenTheNameIsTaken) {
  World world;
  const service::Outcome first = world.Create("key-1", "web");
  const service::Outcome second = world.Create("key-2", "web");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, "name_taken");
  EXPECT_EQ(second.error().vm, first->vms.front().id);
  EXPECT_TRUE(world.Create("key-2", "other").has_value());
  EXPECT_TRUE(world.Create("key-1", "web").has_value());
}

// Report 46: a retry after the deletion is answered by what the key made, and makes nothing.
TEST(Create, AnswersARetryAfterTheDeletionWithTheDeletedVm) {
  World world;
  const service::Outcome first = world.Create("key-1", "web");
  world.RunUntilQuiet();
  ASSERT_TRUE(world.Change(Kind::kDelete, first->vms.front().id).has_value());
  world.RunUntilQuiet();
  const service::Outcome again = world.Create("key-1", "web");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->vms.front().id, first->vms.front().id);
  EXPECT_EQ(again->vms.front().state, VmState::kDeleted);
  world.RunUntilQuiet();
  EXPECT_EQ(world.Audit(), "");
}

// A QEMU that dies at every start answers with errors that prove nothing: looking does, and after
// some tries the create has failed, for a cause that may pass.
TEST(Create, GivesUpAMachineThatDiesAtEveryStart) {
  for (const SimulatedCall call : kForwardCalls) {
    World world;
    world.faults().Add(call, Instead(ErrorCode::kUnknown, "internal error"), 1'000);
    const service::Outcome answer = world.Create("key-1", "web");
    world.RunUntilQuiet(Milliseconds(600'000));
    const model::Operation row = world.OperationRow(answer->operation->id);
    EXPECT_EQ(row.state, OperationState::kFailed) << ToString(call);
    EXPECT_TRUE(row.failure && row.failure->passing) << ToString(call);
    EXPECT_EQ(world.faults().fired(), 5) << ToString(call);
    EXPECT_EQ(world.Audit(), "") << ToString(call);
  }
}

// The base image went away while a start was unknown: the look sends the create back to its disk,
// which is refused now. What the later steps had made goes too.
TEST(Create, LeavesNothingWhenAStepThatWasDoneIsRefusedLater) {
  World world;
  world.faults().Add(SimulatedCall::kStart, Instead(ErrorCode::kUnknown));
  const service::Outcome answer = world.Create("key-1", "web");
  ASSERT_TRUE(world.Step());
  ASSERT_EQ(world.faults().fired(), 1);
  world.faults().Add(SimulatedCall::kCreateDisk, Instead(ErrorCode::kRefused, "no such base"));
  world.RunUntilQuiet();
  EXPECT_EQ(world.faults().fired(), 2);
  EXPECT_EQ(world.OperationRow(answer->operation->id).state, OperationState::kFailed);
  EXPECT_EQ(world.Audit(), "");
}

// Report 118: a stranger's machine in the way is a typed conflict, and lives on.
TEST(Create, NeverTouchesAStrangersMachineOfTheSameId) {
  World world;
  const service::Outcome answer = world.Create("key-1", "web");
  const model::VmId id = answer->vms.front().id;
  hypervisor::SimulatedDomain stranger;
  stranger.id = id;
  stranger.name = "somebody-elses";
  stranger.power = model::Observed::kRunning;
  world.host().Plant(stranger);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).state, VmState::kFailed);
  EXPECT_EQ(world.OperationRow(answer->operation->id).failure->code, "conflict");
  EXPECT_EQ(*world.host().Find(id), stranger);
}

TEST(Create, OfABatchMakesEveryIndexOnceAndRetriesOnlyWhatFailed) {
  World world;
  // Report 94: two of eight fail for a passing cause.
  const service::Outcome first = world.Create("key-1", "web", 8);
  ASSERT_TRUE(first.has_value());
  ASSERT_EQ(first->vms.size(), 8u);
  EXPECT_EQ(first->vms[3].name, "web-3");
  for (const int index : {2, 5}) {
    world.faults().Add(SimulatedCall::kCreateDisk, Instead(ErrorCode::kUnavailable), 5,
                       first->vms[static_cast<std::size_t>(index)].id);
  }
  world.RunUntilQuiet();
  EXPECT_EQ(world.faults().fired(), 10);
  const model::Operation operation = world.OperationRow(first->operation->id);
  EXPECT_EQ(operation.state, OperationState::kFailed);
  EXPECT_EQ(std::ranges::count(operation.items, model::ItemPhase::kDone, &model::Item::phase), 6);
  EXPECT_EQ(world.Audit(), "");

  const auto defined = world.host().Effects(SimulatedCall::kDefine);
  const service::Outcome again = world.Create("key-1", "web", 8);
  ASSERT_TRUE(again.has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(first->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kDefine) - defined, 2);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Create, OfABatchNeverRevivesADeletedIndex) {
  World world;
  const service::Outcome first = world.Create("key-1", "web", 3);
  for (const int index : {0, 1}) {
    world.faults().Add(SimulatedCall::kCreateDisk, Instead(ErrorCode::kUnavailable), 5,
                       first->vms[static_cast<std::size_t>(index)].id);
  }
  world.RunUntilQuiet();
  ASSERT_TRUE(world.Change(Kind::kDelete, first->vms[0].id).has_value());
  world.RunUntilQuiet();
  ASSERT_TRUE(world.Create("key-1", "web", 3).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(first->vms[0].id).state, VmState::kDeleted);
  EXPECT_EQ(world.VmRow(first->vms[1].id).state, VmState::kReady);
  EXPECT_EQ(world.VmRow(first->vms[2].id).state, VmState::kReady);
  EXPECT_EQ(world.Audit(), "");
}

// Report 5: a restart while placed keeps the host, whatever placement would prefer now.
TEST(Create, StaysOnItsRecordedHostAfterARestart) {
  World world;
  const service::Outcome answer = world.Create("key-1", "web");
  world.crash().Arm(4, CrashPoint::When::kAfter);
  world.RunUntilQuiet();
  ASSERT_TRUE(world.crash().has_fired());
  EXPECT_EQ(world.VmRow(answer->vms.front().id).host, model::HostId{"local"});
  EXPECT_EQ(world.Audit(), "");
}

// Report 31: whoever was paused past its lease writes nothing and effects nothing.
TEST(Create, RefusesTheEffectOfAWorkerPausedPastItsLease) {
  World world({.record_within = Milliseconds(30'000)});
  const service::Outcome answer = world.Create("key-1", "web");
  int defines = 0;
  world.faults().OnCall(SimulatedCall::kDefine, [&] {
    // Another worker takes over while the first stands before its effect.
    if (++defines > 1) return;
    world.Advance(Milliseconds(20'000));
    world.Step();
  });
  world.RunUntilQuiet();
  EXPECT_GE(defines, 2);
  EXPECT_EQ(world.host().Effects(SimulatedCall::kDefine), 1);
  EXPECT_EQ(world.host().Find(answer->vms.front().id)->starts, 1);
  EXPECT_EQ(world.VmRow(answer->vms.front().id).state, VmState::kReady);
  EXPECT_EQ(world.Audit(), "");
}

}  // namespace
}  // namespace vmonce::node
