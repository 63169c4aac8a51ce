#include "base/file_identity.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace vmonce {
namespace {

TEST(FileIdentity, IsTheSameForTheSameFileAndTellsOfOneThatIsNotThere) {
  const TempDir dir;
  const std::string path = dir.File("disk");
  EXPECT_EQ(IdentityOf(path).value(), std::nullopt);
  ASSERT_TRUE(WriteFileAtomically(path, "one", 0644));
  const auto first = IdentityOf(path);
  ASSERT_TRUE(first && first->has_value());
  EXPECT_EQ((*first)->bytes, 3);
  EXPECT_EQ(IdentityOf(path).value(), first.value());
  EXPECT_EQ(IdentityOf(path + "/below").value(), std::nullopt);
}

TEST(FileIdentity, DiffersWhenAnotherFileOfTheSameSizeTakesItsPlace) {
  const TempDir dir;
  const std::string path = dir.File("disk");
  ASSERT_TRUE(WriteFileAtomically(path, "one", 0644));
  ASSERT_TRUE(WriteFileAtomically(dir.File("other"), "two", 0644));
  const auto first = IdentityOf(path);
  ASSERT_EQ(rename(dir.File("other").c_str(), path.c_str()), 0);
  EXPECT_NE(IdentityOf(path).value(), first.value());
}

}  // namespace
}  // namespace vmonce
