#include "base/seal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/system.h"
#include "base/temp_dir.h"

namespace vmonce {
namespace {

class SealerTest : public testing::Test {
 protected:
  const std::unique_ptr<Random> random_ = NewSystemRandom();
  const Sealer sealer_{std::string(32, 'k'), *random_};
};

TEST_F(SealerTest, OpensWhatItSealed) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  for (const std::string& plain :
       {std::string(), std::string("x"), all, std::string(100000, 'p')}) {
    const std::string sealed = sealer_.Seal(plain, "operation 1");
    EXPECT_EQ(sealed.size(), 1 + 12 + plain.size() + 16);
    EXPECT_EQ(sealer_.Open(sealed, "operation 1"), plain);
  }
}

TEST_F(SealerTest, HidesTheSecretAndNeverRepeatsItself) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string sealed = sealer_.Seal("hunter2-hunter2", "c");
    EXPECT_EQ(sealed.find("hunter2"), std::string::npos);
    EXPECT_TRUE(seen.insert(sealed).second);
  }
}

TEST_F(SealerTest, RefusesAnyChangedByte) {
  const std::string sealed = sealer_.Seal("secret", "c");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto opened = sealer_.Open(changed, "c");
    ASSERT_FALSE(opened) << i;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalid);
  }
}

TEST_F(SealerTest, RefusesAnyOtherLength) {
  const std::string sealed = sealer_.Seal("secret", "c");
  for (std::size_t length = 0; length < sealed.size(); ++length) {
    EXPECT_FALSE(sealer_.Open(sealed.substr(0, length), "c")) << length;
  }
  EXPECT_FALSE(sealer_.Open(sealed + "x", "c"));
}

TEST_F(SealerTest, RefusesAnotherContextAndAnotherKey) {
  const std::string sealed = sealer_.Seal("secret", "operation 1");
  EXPECT_FALSE(sealer_.Open(sealed, "operation 2"));
  EXPECT_FALSE(sealer_.Open(sealed, ""));
  EXPECT_FALSE(Sealer(std::string(32, 'l'), *random_).Open(sealed, "operation 1"));
  EXPECT_TRUE(Sealer(std::string(32, 'k'), *random_).Open(sealed, "operation 1"));
}

TEST_F(SealerTest, MacsTheSameForTheSameKeyAndSecretOnly) {
  EXPECT_EQ(sealer_.Mac("a"), Sealer(std::string(32, 'k'), *random_).Mac("a"));
  EXPECT_NE(sealer_.Mac("a"), sealer_.Mac("b"));
  EXPECT_NE(sealer_.Mac("a"), Sealer(std::string(32, 'l'), *random_).Mac("a"));
  EXPECT_NE(sealer_.Mac("a"), Sha256("a"));
  // The derived key, not the server's own, is used.
  EXPECT_NE(sealer_.Mac("a"), HmacSha256(std::string(32, 'k'), "a"));
}

// Stored rows must open under every later version of this program.
TEST_F(SealerTest, OpensATextSealedByAnEarlierRun) {
  const auto sealed = ParseBase64("ASK4eIurb72gIxLObgGSBHiTahE9awRdGiZzog56mt1QGzuTkfQ=");
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealer_.Open(*sealed, "operation 1"), "user data");
  EXPECT_EQ(ToHex(sealer_.Mac("user data")),
            "6413fe4c95f5e2ce4f823527ab158a37d853c18f0d217751ea1406465f46de5e");
}

TEST(SealerDeathTest, NeedsAKeyOf32Bytes) {
  const auto random = NewSystemRandom();
  EXPECT_DEATH(Sealer("short", *random), "CHECK failed");
}

class KeyFile : public testing::Test {
 protected:
  const TempDir dir_;
  const std::unique_ptr<Random> random_ = NewSystemRandom();
  const std::string path_ = dir_.File("server.key");
};

TEST_F(KeyFile, IsMadeOnceAndReadAfterwards) {
  const auto made = LoadOrCreateKeyFile(path_, *random_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->size(), 32u);
  EXPECT_EQ(LoadOrCreateKeyFile(path_, *random_), made);
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(KeyFile, IsTheSameForAllWhoComeAtOnce) {
  std::vector<std::string> keys(8);
  {
    std::vector<std::unique_ptr<Thread>> callers;
    const auto threads = NewSystemThreads();
    for (std::string& key : keys) {
      callers.push_back(threads->Spawn("caller", [&key, this](std::stop_token) {
        key = LoadOrCreateKeyFile(path_, *random_).value_or("failed");
      }));
    }
  }
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 1u);
  EXPECT_EQ(keys[0].size(), 32u);
}

TEST_F(KeyFile, IsRefusedWhenOthersCanReadIt) {
  for (const mode_t mode : {0640, 0604, 0660, 0610}) {
    ASSERT_TRUE(WriteFileAtomically(path_, std::string(32, 'k'), mode));
    const auto loaded = LoadOrCreateKeyFile(path_, *random_);
    ASSERT_FALSE(loaded) << mode;
    EXPECT_EQ(loaded.error().code, ErrorCode::kInvalid);
  }
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(32, 'k'), 0400));
  EXPECT_EQ(LoadOrCreateKeyFile(path_, *random_), std::string(32, 'k'));
}

TEST_F(KeyFile, IsRefusedWhenAnotherUserOwnsIt) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(32, 'k'), 0600));
  // Only root can give a file away; for others it stays theirs and good.
  const bool is_given_away = chown(path_.c_str(), 12345, 12345) == 0;
  EXPECT_EQ(LoadOrCreateKeyFile(path_, *random_).has_value(), !is_given_away);
}

TEST_F(KeyFile, IsRefusedInAnotherSizeAndLeftAlone) {
  for (const std::size_t size : {0, 31, 33}) {
    ASSERT_TRUE(WriteFileAtomically(path_, std::string(size, 'k'), 0600));
    EXPECT_EQ(LoadOrCreateKeyFile(path_, *random_).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(ReadWholeFile(path_, 100), std::string(size, 'k'));
  }
}

TEST_F(KeyFile, IsNotMadeWhereItsDirectoryIsMissing) {
  EXPECT_EQ(LoadOrCreateKeyFile(dir_.File("none/server.key"), *random_).error().code,
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace vmonce
