#include "hypervisor/image_uploads.h"

#include <gtest/gtest.h>

#include "base/system.h"

namespace vmonce::hypervisor {
namespace {

TEST(ImageUploads, LetOneCallSendAFileAndTheNextGoOnWhereItEnded) {
  const auto threads = NewSystemThreads();
  ImageUploads uploads(*threads);
  const Digest digest = Sha256("image");
  const auto connection = std::make_shared<int>(1);
  EXPECT_EQ(uploads.Take(digest, connection), 0);
  EXPECT_EQ(uploads.Take(digest, connection), std::nullopt);
  EXPECT_EQ(uploads.Take(Sha256("other"), connection), 0);
  uploads.GiveBack(digest, 7);
  EXPECT_EQ(uploads.SentOf(digest), 7);
  EXPECT_EQ(uploads.Take(digest, connection), 7);
}

TEST(ImageUploads, BeginAnewOverAnotherConnectionAndAfterAFailure) {
  const auto threads = NewSystemThreads();
  ImageUploads uploads(*threads);
  const Digest digest = Sha256("image");
  auto connection = std::make_shared<int>(1);
  uploads.Take(digest, connection);
  uploads.GiveBack(digest, 7);
  connection = std::make_shared<int>(1);
  EXPECT_EQ(uploads.Take(digest, connection), 0);
  uploads.GiveBack(digest, 7);
  uploads.Take(digest, connection);
  uploads.GiveBack(digest, 0);
  EXPECT_EQ(uploads.Take(digest, connection), 0);
}

}  // namespace
}  // namespace vmonce::hypervisor
