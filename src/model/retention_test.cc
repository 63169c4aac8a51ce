#include "model/retention.h"

#include <gtest/gtest.h>

namespace vmonce::model {
namespace {

using std::chrono::hours;

constexpr RetentionPolicy kPolicy{.retention = hours(100), .key_ttl = hours(10)};
const Time kFinished = FromUnixMs(1'700'000'000'000);

Operation Ended(OperationKind kind, OperationState state = OperationState::kSucceeded) {
  Operation operation;
  operation.kind = kind;
  operation.state = state;
  operation.finished = kFinished;
  return operation;
}

TEST(Retention, NeverEndsAnUnfinishedRecord) {
  for (const auto kind : {OperationKind::kCreate, OperationKind::kDelete, OperationKind::kStart,
                          OperationKind::kStop, OperationKind::kReboot, OperationKind::kUpdate}) {
    for (const auto state :
         {OperationState::kAccepted, OperationState::kRunning, OperationState::kVerifying}) {
      Operation operation = Ended(kind, state);
      operation.finished.reset();
      EXPECT_EQ(RecordExpiry(operation, kFinished, kPolicy), std::nullopt)
          << ToString(kind) << " " << ToString(state);
    }
  }
}

// A retry that comes later than any window anyone chose makes no second VM while the first lives.
TEST(Retention, KeepsACreateAsLongAsItsVmLives) {
  for (const auto state :
       {OperationState::kSucceeded, OperationState::kFailed, OperationState::kCancelled}) {
    EXPECT_EQ(RecordExpiry(Ended(OperationKind::kCreate, state), std::nullopt, kPolicy),
              std::nullopt)
        << ToString(state);
  }
}

TEST(Retention, CountsACreateFromTheDeletionOfItsLastVm) {
  const Time gone = kFinished + hours(1000);
  EXPECT_EQ(RecordExpiry(Ended(OperationKind::kCreate), gone, kPolicy), gone + hours(100));
}

TEST(Retention, CountsACancelledCreateFromItsOwnEnd) {
  const Operation operation = Ended(OperationKind::kCreate, OperationState::kCancelled);
  EXPECT_EQ(RecordExpiry(operation, kFinished - hours(1), kPolicy), kFinished + hours(100));
}

Vm VmIn(VmState state, Time updated) {
  Vm vm;
  vm.state = state;
  vm.updated = updated;
  vm.holds_reservation = state != VmState::kFailed && state != VmState::kDeleted;
  if (state == VmState::kDeleted) vm.deleted = updated;
  return vm;
}

TEST(LastGone, IsWhenTheLastVmWasDeletedOrFailedWithoutEffect) {
  const Operation create = Ended(OperationKind::kCreate, OperationState::kFailed);
  const Vm deleted = VmIn(VmState::kDeleted, kFinished + hours(5));
  const Vm failed = VmIn(VmState::kFailed, kFinished + hours(7));
  EXPECT_EQ(LastGone(create, {}), kFinished);
  EXPECT_EQ(LastGone(create, std::vector<Vm>{deleted}), kFinished + hours(5));
  EXPECT_EQ(LastGone(create, std::vector<Vm>{failed, deleted}), kFinished + hours(7));
}

TEST(LastGone, IsNeverWhileOneLivesOrIsBeingDeleted) {
  const Operation create = Ended(OperationKind::kCreate);
  for (const VmState state : {VmState::kPending, VmState::kCreating, VmState::kReady,
                              VmState::kMissing, VmState::kDeleting}) {
    const std::vector<Vm> vms = {VmIn(VmState::kDeleted, kFinished), VmIn(state, kFinished)};
    EXPECT_EQ(LastGone(create, vms), std::nullopt) << ToString(state);
  }
  Vm undoing = VmIn(VmState::kFailed, kFinished);
  undoing.holds_reservation = true;
  EXPECT_EQ(LastGone(create, std::vector<Vm>{undoing}), std::nullopt);
}

TEST(Retention, KeepsADeleteAsLongAsTheVmsOwnRecord) {
  const Operation operation = Ended(OperationKind::kDelete);
  EXPECT_EQ(RecordExpiry(operation, kFinished, kPolicy), kFinished + hours(100));
  EXPECT_EQ(RecordExpiry(operation, std::nullopt, kPolicy), kFinished + hours(100));
}

TEST(Retention, KeepsWhatHasNoResourceForTheKeyTtl) {
  for (const auto kind : {OperationKind::kStart, OperationKind::kStop, OperationKind::kReboot,
                          OperationKind::kUpdate}) {
    EXPECT_EQ(RecordExpiry(Ended(kind), std::nullopt, kPolicy), kFinished + hours(10))
        << ToString(kind);
    EXPECT_EQ(RecordExpiry(Ended(kind), kFinished + hours(1), kPolicy), kFinished + hours(10))
        << ToString(kind);
  }
}

TEST(Retention, HasTheDefaultsThatAreDocumented) {
  const RetentionPolicy policy;
  EXPECT_EQ(policy.retention, hours(30 * 24));
  EXPECT_EQ(policy.tombstone_retention, hours(365 * 24));
  EXPECT_EQ(policy.key_ttl, hours(24));
  EXPECT_GE(policy.retention, limits::kRetentionMin);
}

TEST(RetentionDeath, FindsAnEndWithoutATime) {
  Operation operation = Ended(OperationKind::kUpdate);
  operation.finished.reset();
  EXPECT_DEATH((void)RecordExpiry(operation, std::nullopt, kPolicy), "at no time");
}

}  // namespace
}  // namespace vmonce::model
