#include "base/uuid.h"

#include <gtest/gtest.h>

#include <set>

#include "base/system.h"

namespace vmonce {
namespace {

class FixedClock final : public Clock {
 public:
  explicit FixedClock(std::int64_t ms) : ms_(ms) {}
  Time Now() override { return FromUnixMs(ms_); }
  Instant Monotonic() override { return Instant(); }

 private:
  std::int64_t ms_;
};

class OnesRandom final : public Random {
 public:
  void Fill(std::span<std::byte> out) override {
    for (std::byte& b : out) b = std::byte{0xff};
  }
};

TEST(Uuid, LaysVersion7OutAsTheRfcSays) {
  // The time of RFC 9562 appendix A.6.
  FixedClock clock(0x017F22E279B0);
  OnesRandom random;
  EXPECT_EQ(ToString(NewUuidV7(clock, random)), "017f22e2-79b0-7fff-bfff-ffffffffffff");
}

TEST(Uuid, OrdersLaterIdsAfterEarlierOnes) {
  const auto random = NewSystemRandom();
  FixedClock earlier(1767323045678);
  FixedClock later(1767323045679);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LT(NewUuidV7(earlier, *random), NewUuidV7(later, *random));
  }
}

TEST(Uuid, DiffersWithinOneMillisecond) {
  const auto random = NewSystemRandom();
  FixedClock clock(1767323045678);
  std::set<Uuid> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(NewUuidV7(clock, *random));
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Uuid, ParsesEitherCaseAndPrintsLowerCase) {
  const auto uuid = ParseUuid("017F22E2-79b0-7CC3-98C4-DC0C0C07398F");
  ASSERT_TRUE(uuid);
  EXPECT_EQ(ToString(*uuid), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  EXPECT_EQ(ParseUuid(ToString(*uuid)), uuid);
}

TEST(Uuid, RefusesOtherForms) {
  for (const char* text : {
           "",
           "017f22e279b07cc398c4dc0c0c07398f",
           "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
           "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
           "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
           "017f22e2-79b0-7cc3-98c4-dc0c0c07398ff",
           "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
           "017f22e2079b0-7cc3-98c4-dc0c0c07398f",
           "017f22e27-9b0-7cc3-98c4-dc0c0c07398f",
           " 17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
           "+17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
       }) {
    EXPECT_EQ(ParseUuid(text), std::nullopt) << text;
  }
}

TEST(Uuid, IsNilOnlyWhenAllBytesAreZero) {
  EXPECT_TRUE(Uuid{}.IsNil());
  EXPECT_TRUE(ParseUuid("00000000-0000-0000-0000-000000000000")->IsNil());
  EXPECT_FALSE(ParseUuid("00000000-0000-0000-0000-000000000001")->IsNil());
}

}  // namespace
}  // namespace vmonce
