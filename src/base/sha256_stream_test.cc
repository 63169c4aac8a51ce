#include "base/sha256_stream.h"

#include <gtest/gtest.h>

namespace vmonce {
namespace {

TEST(Sha256Stream, IsTheHashOfAllPiecesTogether) {
  Sha256Stream stream;
  stream.Add("exactly ");
  stream.Add("");
  stream.Add("once");
  EXPECT_EQ(stream.Finish(), Sha256("exactly once"));
  EXPECT_EQ(Sha256Stream().Finish(), Sha256(""));
}

}  // namespace
}  // namespace vmonce
