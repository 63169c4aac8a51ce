#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace vmonce {
namespace {

TEST(Rfc3339, FormatsUtcWithMilliseconds) {
  EXPECT_EQ(FormatRfc3339(FromUnixMs(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatRfc3339(FromUnixMs(1767323045678)), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(FormatRfc3339(FromUnixMs(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatRfc3339(FromUnixMs(1709210096007)), "2024-02-29T12:34:56.007Z");
}

TEST(Rfc3339, ParsesWhatItFormats) {
  for (std::int64_t ms : {INT64_C(0), INT64_C(1), INT64_C(-1), INT64_C(1767323045678),
                          INT64_C(253402300799999), INT64_C(-62167219200000)}) {
    EXPECT_EQ(ParseRfc3339(FormatRfc3339(FromUnixMs(ms))), FromUnixMs(ms)) << ms;
  }
}

TEST(Rfc3339, ParsesOffsetsAndFractions) {
  const Time expected = FromUnixMs(1767323045000);
  EXPECT_EQ(ParseRfc3339("2026-01-02T03:04:05Z"), expected);
  EXPECT_EQ(ParseRfc3339("2026-01-02T04:34:05+01:30"), expected);
  EXPECT_EQ(ParseRfc3339("2026-01-01T22:04:05-05:00"), expected);
  EXPECT_EQ(ParseRfc3339("2026-01-02T03:04:05-00:00"), expected);
  EXPECT_EQ(ParseRfc3339("2026-01-02T03:04:05.5Z"), expected + Milliseconds(500));
  EXPECT_EQ(ParseRfc3339("2026-01-02T03:04:05.07Z"), expected + Milliseconds(70));
  EXPECT_EQ(ParseRfc3339("2026-01-02T03:04:05.123999999Z"), expected + Milliseconds(123));
}

TEST(Rfc3339, RefusesEverythingElse) {
  for (const char* text : {
           "",
           "2026",
           "2026-01-02",
           "2026-01-02T03:04:05",
           "2026-01-02 03:04:05Z",
           "2026-01-02t03:04:05Z",
           "2026-01-02T03:04:05z",
           " 2026-01-02T03:04:05Z",
           "2026-01-02T03:04:05Z ",
           "2026-1-02T03:04:05Z",
           "2026-13-02T03:04:05Z",
           "2026-00-02T03:04:05Z",
           "2026-02-29T03:04:05Z",
           "2026-01-32T03:04:05Z",
           "2026-01-02T24:00:00Z",
           "2026-01-02T03:60:05Z",
           "2026-06-30T23:59:60Z",
           "2026-01-02T03:04:05.Z",
           "2026-01-02T03:04:05.1234567890Z",
           "2026-01-02T03:04:05,5Z",
           "2026-01-02T03:04:05+1:00",
           "2026-01-02T03:04:05+0100",
           "2026-01-02T03:04:05+24:00",
           "2026-01-02T03:04:05+01:60",
           "0000-01-01T00:00:00+01:00",
           "9999-12-31T23:59:59-01:00",
           "-026-01-02T03:04:05Z",
           "2026-01-02T+3:04:05Z",
       }) {
    EXPECT_EQ(ParseRfc3339(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace vmonce
