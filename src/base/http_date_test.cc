#include "base/http_date.h"

#include <gtest/gtest.h>

namespace vmonce {
namespace {

TEST(HttpDate, IsReadInTheFormThatMayBeSent) {
  const auto time = ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT");
  ASSERT_TRUE(time);
  EXPECT_EQ(ToUnixMs(*time), 784'111'777'000);
  EXPECT_TRUE(ParseHttpDate("Thu, 29 Feb 2024 00:00:00 GMT"));
}

TEST(HttpDate, IsRefusedInAnyOther) {
  for (const char* text :
       {"", "yesterday", "Sun, 6 Nov 1994 08:49:37 GMT", "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sun,  06 Nov 1994 08:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Thu, 29 Feb 2023 00:00:00 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT", "1994-11-06T08:49:37Z"}) {
    EXPECT_FALSE(ParseHttpDate(text)) << text;
  }
}

}  // namespace
}  // namespace vmonce
