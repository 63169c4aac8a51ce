#include "app/duration.h"

#include <gtest/gtest.h>

namespace vmonce::app {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Duration, ReadsANumberAndOneUnit) {
  EXPECT_EQ(ParseDuration("500ms"), Milliseconds(500));
  EXPECT_EQ(ParseDuration("15s"), seconds(15));
  EXPECT_EQ(ParseDuration("10m"), minutes(10));
  EXPECT_EQ(ParseDuration("24h"), hours(24));
  EXPECT_EQ(ParseDuration("30d"), hours(720));
  EXPECT_EQ(ParseDuration("0s"), seconds(0));
}

TEST(Duration, RefusesWhatIsNotExactlyThat) {
  for (const char* text :
       {"", "s", "15", "15 s", " 15s", "15s ", "-1s", "-0s", "+1s", "1.5h", "1h30m", "15S", "15sec",
        "1w", "99999999999999999999s", "9223372036854775807d"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(Duration, IsWrittenInTheLargestUnitThatLosesNothing) {
  for (const char* text : {"0s", "1ms", "1500ms", "15s", "90s", "10m", "25h", "30d", "365d"}) {
    const auto duration = ParseDuration(text);
    ASSERT_TRUE(duration.has_value()) << text;
    EXPECT_EQ(FormatDuration(*duration), text);
  }
  EXPECT_EQ(FormatDuration(seconds(86'400)), "1d");
}

}  // namespace
}  // namespace vmonce::app
