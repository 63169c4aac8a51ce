#include "base/result.h"

#include <gtest/gtest.h>

#include <set>

namespace vmonce {
namespace {

TEST(Result, ComparesWithResultsValuesAndErrors) {
  const Result<int> one = 1;
  const Result<int> failed = Fail(ErrorCode::kUnknown, "lost");
  EXPECT_EQ(one, Result<int>(1));
  EXPECT_NE(one, Result<int>(2));
  EXPECT_NE(one, failed);
  EXPECT_EQ(one, 1);
  EXPECT_EQ(1, one);
  EXPECT_NE(one, 2);
  EXPECT_NE(failed, 1);
  EXPECT_EQ(failed, Fail(ErrorCode::kUnknown, "lost"));
  EXPECT_EQ(failed, Result<int>(Fail(ErrorCode::kUnknown, "lost")));
  EXPECT_NE(failed, Result<int>(Fail(ErrorCode::kUnavailable, "lost")));
  EXPECT_EQ(Status(), Status());
  EXPECT_NE(Status(), Status(Fail(ErrorCode::kUnknown, "lost")));
}

TEST(Result, KeepsTheCodeWhenContextIsAdded) {
  const Status status = Context("open ledger", Error{ErrorCode::kUnavailable, "busy"});
  EXPECT_EQ(status.error(), (Error{ErrorCode::kUnavailable, "open ledger: busy"}));
}

TEST(ErrorCode, HasOneNameEach) {
  std::set<std::string_view> names;
  for (const ErrorCode code :
       {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict, ErrorCode::kRefused,
        ErrorCode::kUnavailable, ErrorCode::kUnknown, ErrorCode::kFenced, ErrorCode::kInternal}) {
    EXPECT_TRUE(names.insert(ToString(code)).second) << ToString(code);
  }
}

}  // namespace
}  // namespace vmonce
