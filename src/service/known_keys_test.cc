#include "service/known_keys.h"

#include <gtest/gtest.h>

#include <cstring>

namespace vmonce::service {
namespace {

const model::ProjectId kOne{"one"};
const model::ProjectId kTwo{"two"};

TEST(KnownKeys, KnowsAKeyWithinItsProject) {
  KnownKeys keys;
  keys.Put(kOne, Digest{1});
  EXPECT_TRUE(keys.Has(kOne, Digest{1}));
  EXPECT_FALSE(keys.Has(kTwo, Digest{1}));
  EXPECT_FALSE(keys.Has(kOne, Digest{2}));
}

TEST(KnownKeys, ForgetsAKeyAndNoOther) {
  KnownKeys keys;
  keys.Put(kOne, Digest{1});
  keys.Put(kTwo, Digest{1});
  keys.Forget(kOne, Digest{1});
  keys.Forget(kOne, Digest{9});
  EXPECT_FALSE(keys.Has(kOne, Digest{1}));
  EXPECT_TRUE(keys.Has(kTwo, Digest{1}));
}

TEST(KnownKeys, KnowsAllOfSomeThousandKeys) {
  KnownKeys keys;
  const auto number = [](std::uint32_t i) {
    const std::uint64_t spread = (i + 1) * 0x9E3779B97F4A7C15;
    Digest digest{};
    std::memcpy(digest.data(), &spread, sizeof spread);
    return digest;
  };
  for (std::uint32_t i = 0; i < 5'000; ++i) keys.Put(kOne, number(i));
  for (std::uint32_t i = 0; i < 5'000; ++i) EXPECT_TRUE(keys.Has(kOne, number(i))) << i;
}

TEST(KnownKeys, KeepsTheLaterOfTwoKeysThatShareAPlace) {
  KnownKeys keys;
  const Digest first{1};
  keys.Put(kOne, first);
  // Some later key takes the place: one of a few of those that share it, and one in so many does.
  Digest later{2};
  std::uint32_t number = 0;
  while (keys.Has(kOne, first) && number < 50 * model::limits::kReplayCacheEntries) {
    ++number;
    std::memcpy(later.data(), &number, sizeof number);
    later[4] = 9;
    keys.Put(kOne, later);
  }
  ASSERT_FALSE(keys.Has(kOne, first));
  EXPECT_TRUE(keys.Has(kOne, later));
  keys.Forget(kOne, first);
  EXPECT_TRUE(keys.Has(kOne, later)) << "another's mark stays";
}

}  // namespace
}  // namespace vmonce::service
