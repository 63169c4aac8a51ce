#include "service/replay_cache.h"

#include <gtest/gtest.h>

#include "base/system.h"

namespace vmonce::service {
namespace {

const model::ProjectId kOne{"one"};
const model::ProjectId kTwo{"two"};

ReplayCache::Entry EntryOf(std::uint8_t number) {
  ReplayCache::Entry entry;
  entry.fingerprint = Digest{number};
  entry.operation.value.bytes[15] = number;
  return entry;
}

class ReplayCacheTest : public testing::Test {
 protected:
  std::uint8_t Found(const model::ProjectId& project, std::uint8_t key) {
    const auto entry = cache_.Find(project, Digest{key});
    return entry ? entry->operation.value.bytes[15] : 0;
  }

  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  ReplayCache cache_{*threads_, 3};
};

TEST_F(ReplayCacheTest, KnowsAKeyWithinItsProject) {
  cache_.Put(kOne, Digest{1}, EntryOf(1));
  cache_.Put(kTwo, Digest{1}, EntryOf(2));
  EXPECT_EQ(Found(kOne, 1), 1);
  EXPECT_EQ(Found(kTwo, 1), 2);
  EXPECT_EQ(Found(kOne, 2), 0);
}

TEST_F(ReplayCacheTest, DropsTheEntryUsedLongestAgo) {
  for (std::uint8_t key = 1; key <= 3; ++key) cache_.Put(kOne, Digest{key}, EntryOf(key));
  EXPECT_EQ(Found(kOne, 1), 1) << "a look counts as a use";
  cache_.Put(kOne, Digest{2}, EntryOf(2));
  cache_.Put(kOne, Digest{4}, EntryOf(4));
  EXPECT_EQ(Found(kOne, 3), 0);
  EXPECT_EQ(Found(kOne, 1), 1);
  EXPECT_EQ(Found(kOne, 2), 2);
  EXPECT_EQ(Found(kOne, 4), 4);
}

TEST_F(ReplayCacheTest, ForgetsAKeyAndNoOther) {
  cache_.Put(kOne, Digest{1}, EntryOf(1));
  cache_.Put(kTwo, Digest{1}, EntryOf(2));
  cache_.Forget(kOne, Digest{1});
  cache_.Forget(kOne, Digest{9});
  EXPECT_EQ(Found(kOne, 1), 0);
  EXPECT_EQ(Found(kTwo, 1), 2);
  cache_.Put(kOne, Digest{1}, EntryOf(5));
  EXPECT_EQ(Found(kOne, 1), 5);
}

TEST_F(ReplayCacheTest, NeverHoldsMoreThanItsBound) {
  for (std::uint8_t key = 1; key <= 100; ++key) cache_.Put(kOne, Digest{key}, EntryOf(key));
  int held = 0;
  for (std::uint8_t key = 1; key <= 100; ++key) held += Found(kOne, key) != 0;
  EXPECT_EQ(held, 3);
}

}  // namespace
}  // namespace vmonce::service
