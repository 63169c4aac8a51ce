#include "model/operation.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace vmonce::model {
namespace {

using enum OperationState;

constexpr std::array kAll = {kAccepted, kRunning, kVerifying, kSucceeded, kFailed, kCancelled};

// Written out apart from the implementation's table: a row leads to the columns marked x, in the
// order of kAll.
constexpr std::array<std::string_view, 6> kLegal = {
    "xxxxxx",  // accepted: a worker's first record may tell of any end
    ".xxxxx",  // running
    ".xxxxx",  // verifying
    "......",  // succeeded
    "x.....",  // failed: a new attempt
    "......",  // cancelled
};

TEST(Operation, MovesOnlyAlongTheLegalTransitions) {
  for (std::size_t from = 0; from < kAll.size(); ++from) {
    for (std::size_t to = 0; to < kAll.size(); ++to) {
      EXPECT_EQ(IsLegal(kAll[from], kAll[to]), kLegal[from][to] == 'x')
          << ToString(kAll[from]) << " to " << ToString(kAll[to]);
    }
  }
}

TEST(Operation, IsFinishedOnceItHasAnOutcome) {
  EXPECT_FALSE(IsFinished(kAccepted));
  EXPECT_FALSE(IsFinished(kRunning));
  EXPECT_FALSE(IsFinished(kVerifying));
  EXPECT_TRUE(IsFinished(kSucceeded));
  EXPECT_TRUE(IsFinished(kFailed));
  EXPECT_TRUE(IsFinished(kCancelled));
}

TEST(Operation, EndsAnItemWithDoneFailedOrCancelled) {
  EXPECT_FALSE(IsEnded(ItemPhase::kForward));
  EXPECT_FALSE(IsEnded(ItemPhase::kUndoing));
  EXPECT_TRUE(IsEnded(ItemPhase::kDone));
  EXPECT_TRUE(IsEnded(ItemPhase::kFailed));
  EXPECT_TRUE(IsEnded(ItemPhase::kCancelled));
}

}  // namespace
}  // namespace vmonce::model
