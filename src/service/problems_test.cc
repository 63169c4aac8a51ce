// Every refusal of the ledger and every stored failure in the table's terms.
#include <gtest/gtest.h>

#include "service/pending.h"
#include "service/queries.h"

namespace vmonce::service {
namespace {

using ports::DeclineReason;

struct Expected {
  DeclineReason reason;
  std::string code;
  int status;
  bool retry_same_key;
};

TEST(Problems, TellEveryRefusalOfTheLedgerAndThatTheKeyIsNotUsedUp) {
  const std::vector<Expected> all = {
      {DeclineReason::kNameTaken, "name_taken", 409, true},
      {DeclineReason::kQuotaExceeded, "quota_exceeded", 403, true},
      {DeclineReason::kNoCapacity, "no_capacity", 503, true},
      {DeclineReason::kVmNotFound, "vm_not_found", 404, true},
      {DeclineReason::kStaleVersion, "precondition_failed", 412, true},
      {DeclineReason::kWrongState, "wrong_state", 409, true},
      {DeclineReason::kBacklogFull, "backlog_full", 503, true},
      {DeclineReason::kTooManyKeys, "too_many_keys", 429, true},
  };
  for (const Expected& expected : all) {
    ports::Declined declined;
    declined.reason = expected.reason;
    declined.detail = "told-by-the-ledger";
    const model::Problem problem = ProblemOf(declined);
    const model::ProblemKind& kind = model::KindOf(problem.code);
    EXPECT_EQ(problem.code, expected.code);
    EXPECT_EQ(kind.status, expected.status) << problem.code;
    EXPECT_EQ(problem.retry_same_key.value_or(kind.retry_same_key), expected.retry_same_key);
    EXPECT_EQ(problem.retry_after.has_value(), kind.status == 503 || kind.status == 429)
        << problem.code;
    EXPECT_FALSE(problem.detail.empty());
  }
}

TEST(Problems, NameTheVmThatIsInTheWayAndTheStateThatIsWrong) {
  ports::Declined taken;
  taken.reason = DeclineReason::kNameTaken;
  taken.other_vm = model::VmId{};
  EXPECT_EQ(ProblemOf(taken).vm, taken.other_vm);
  ports::Declined wrong;
  wrong.reason = DeclineReason::kWrongState;
  wrong.vm_state = model::VmState::kMissing;
  EXPECT_NE(ProblemOf(wrong).detail.find("missing"), std::string::npos);
}

model::Operation FailedOperation(model::Failure failure) {
  model::Operation operation;
  operation.id.value.bytes[15] = 2;
  operation.state = model::OperationState::kFailed;
  operation.items.emplace_back().subject.bytes[15] = 1;
  operation.accepted = FromUnixMs(1'000);
  operation.failure = std::move(failure);
  return operation;
}

TEST(Problems, RepeatAStoredFailureAndWhetherItMayPass) {
  for (const bool passing : {true, false}) {
    const model::Operation operation =
        FailedOperation({"hypervisor_unavailable", "the first cause", passing});
    const model::Problem problem = StoredProblem(operation);
    EXPECT_EQ(problem.code, "hypervisor_unavailable");
    EXPECT_EQ(problem.detail, "the first cause");
    EXPECT_EQ(problem.retry_same_key, passing);
    EXPECT_EQ(problem.retry_after.has_value(), passing);
    EXPECT_EQ(problem.operation, operation.id);
    EXPECT_EQ(problem.vm, model::VmId{operation.items[0].subject});
    EXPECT_EQ(problem.first_seen, operation.accepted);
  }
}

TEST(Problems, TellACauseThatHasNoRowOfItsOwnInTheDetail) {
  const model::Problem problem = StoredProblem(FailedOperation({"gone_for_a_walk", "gone", false}));
  EXPECT_EQ(problem.code, "hypervisor_refused");
  EXPECT_EQ(problem.detail, "gone (gone_for_a_walk)");
  EXPECT_EQ(problem.retry_same_key, false);
}

TEST(Problems, OfABatchNameNoSingleVm) {
  model::Operation batch = FailedOperation({"no_capacity", "full", true});
  batch.items.emplace_back();
  EXPECT_EQ(StoredProblem(batch).vm, std::nullopt);
}

TEST(Problems, OfAnExpiredKeyNameWhatItMade) {
  model::Tombstone tombstone;
  tombstone.vms.push_back(model::VmId{});
  tombstone.first_seen = FromUnixMs(1'000);
  tombstone.final_state = model::OperationState::kSucceeded;
  const model::Problem problem = ExpiredProblem(tombstone);
  EXPECT_EQ(model::KindOf(problem.code).status, 410);
  EXPECT_EQ(problem.vm, model::VmId{});
  EXPECT_EQ(problem.first_seen, tombstone.first_seen);
  EXPECT_NE(problem.detail.find("succeeded"), std::string::npos);
}

TEST(Problems, OfWhatDoesNotAnswerNowInviteARetryWithTheSameKey) {
  for (const model::Problem& problem :
       {OverloadedProblem(), LedgerProblem({ErrorCode::kUnknown, "disk"})}) {
    const model::ProblemKind& kind = model::KindOf(problem.code);
    EXPECT_EQ(kind.status, 503) << problem.code;
    EXPECT_TRUE(problem.retry_same_key.value_or(kind.retry_same_key)) << problem.code;
    EXPECT_TRUE(problem.retry_after.has_value()) << problem.code;
  }
}

TEST(Problems, OfAnUnknownImagePointAtIt) {
  const model::Problem problem = ImageNotFound("debain");
  EXPECT_EQ(model::KindOf(problem.code).status, 404);
  ASSERT_EQ(problem.fields.size(), 1u);
  EXPECT_EQ(problem.fields[0].pointer, "/image");
}

}  // namespace
}  // namespace vmonce::service
