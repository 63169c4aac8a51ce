#include "hypervisor/image_uploads.h"

#include <gtest/gtest.h>

#include "base/system.h"
#include "model/image_limits.h"

namespace vmonce::hypervisor {
namespace {

struct Uploads : testing::Test {
  // Stands for a session: that somebody keeps it shows in the owner's count.
  std::shared_ptr<LibvirtSession> Session() {
    return std::shared_ptr<LibvirtSession>(owner, nullptr);
  }

  const std::unique_ptr<Threads> threads = NewSystemThreads();
  ImageUploads uploads{*threads};
  const Digest digest = Sha256("image");
  const std::shared_ptr<int> owner = std::make_shared<int>(1);
  Instant now{};
};

TEST_F(Uploads, LetOneCallSendAFileAndTheNextGoOnWhereItEnded) {
  const auto first = uploads.Take(digest, now);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->sent, 0);
  EXPECT_FALSE(uploads.Take(digest, now));
  EXPECT_TRUE(uploads.Take(Sha256("other"), now));
  uploads.Keep(digest, {.sent = 7, .session = Session()}, now);
  EXPECT_EQ(uploads.SentOf(digest), 7);
  const auto next = uploads.Take(digest, now);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->sent, 7);
  EXPECT_FALSE(next->session.owner_before(owner) || owner.owner_before(next->session));
  EXPECT_FALSE(uploads.Take(digest, now));
}

TEST_F(Uploads, GiveASessionBackAtTheEnd) {
  uploads.Take(digest, now);
  uploads.Keep(digest, {.sent = 7, .session = Session()}, now);
  EXPECT_EQ(owner.use_count(), 2);
  uploads.End(digest);
  EXPECT_EQ(owner.use_count(), 1);
  const auto anew = uploads.Take(digest, now);
  ASSERT_TRUE(anew);
  EXPECT_EQ(anew->sent, 0);
}

TEST_F(Uploads, ForgetAFileThatNobodyGoesOnWith) {
  uploads.Take(digest, now);
  uploads.Take(Sha256("sent for long"), now);
  uploads.Keep(digest, {.sent = 7, .session = Session()}, now);
  now += model::limits::kImageUploadIdle;
  uploads.Take(Sha256("another"), now);
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(uploads.SentOf(digest), 0);
  EXPECT_FALSE(uploads.Take(Sha256("sent for long"), now));
}

}  // namespace
}  // namespace vmonce::hypervisor
