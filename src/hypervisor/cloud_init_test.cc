#include "hypervisor/cloud_init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "hypervisor/scratch.h"

namespace vmonce::hypervisor {
namespace {

using testing::HasSubstr;

ports::SeedOrder Order() {
  return {.name = "seed",
          .instance_id = "01900000-0000-7000-8000-0000000000aa",
          .hostname = "web-1",
          .ssh_keys = {"ssh-ed25519 AAAA one@example", "ssh-rsa BBBB \"two\"\nruncmd: [bad]"},
          .user_data = "#!/bin/sh\necho a secret\n"};
}

TEST(CloudInit, WritesIdHostnameAndKeysAsMetaData) {
  const std::string text = MetaData(Order());
  EXPECT_THAT(text, HasSubstr("instance-id: \"01900000-0000-7000-8000-0000000000aa\"\n"));
  EXPECT_THAT(text, HasSubstr("local-hostname: \"web-1\"\n"));
  EXPECT_THAT(text, HasSubstr("public-keys:\n  - \"ssh-ed25519 AAAA one@example\"\n"));
}

TEST(CloudInit, KeepsAKeyWithLineEndsOnItsLine) {
  EXPECT_THAT(MetaData(Order()), HasSubstr("  - \"ssh-rsa BBBB \\\"two\\\"\\nruncmd: [bad]\"\n"));
}

TEST(CloudInit, HandsUserDataOnUnchanged) {
  EXPECT_EQ(UserData(Order()), Order().user_data);
  auto order = Order();
  order.user_data.clear();
  EXPECT_EQ(UserData(order), "#cloud-config\n{}\n");
}

TEST(CloudInit, MakesAnImageCalledCidataAndLeavesNoClearText) {
  const TempDir directory;
  auto image = BuildSeedImage(Order(), directory.path());
  ASSERT_TRUE(image) << image.error().detail;
  auto bytes = ReadWholeFile(*image, 8 << 20);
  ASSERT_TRUE(bytes);
  // ECMA-119: the volume id is 32 bytes at offset 40 of the sector at 32768.
  EXPECT_EQ(bytes->substr(32768 + 40, 32), "CIDATA" + std::string(26, ' '));
  EXPECT_THAT(*bytes, HasSubstr("echo a secret"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_EQ(entry.path().string(), *image);
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(CloudInit, LeavesNoClearTextWhenTheImageCannotBeMade) {
  const TempDir directory;
  // A directory stands where the image is to be.
  std::filesystem::create_directory(directory.File("seed.iso"));
  auto image = BuildSeedImage(Order(), directory.path());
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(image.error().detail.find("a secret"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory.File("user-data")));
  EXPECT_FALSE(std::filesystem::exists(directory.File("meta-data")));
}

TEST(Scratch, IsPrivateAndGoes) {
  const TempDir parent;
  std::string path;
  {
    auto scratch = ScratchDirectory::Make(parent.path());
    ASSERT_TRUE(scratch);
    path = scratch->path();
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
    ASSERT_TRUE(WriteFileAtomically(path + "/x", "x", 0600));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Scratch, ClearsWhatAKilledProcessLeftAndNothingElse) {
  const TempDir parent;
  std::filesystem::create_directories(parent.File("scratch-abcdef/deep"));
  std::filesystem::create_directories(parent.File("another"));
  ClearScratch(parent.path());
  EXPECT_FALSE(std::filesystem::exists(parent.File("scratch-abcdef")));
  EXPECT_TRUE(std::filesystem::exists(parent.File("another")));
}

}  // namespace
}  // namespace vmonce::hypervisor
