#include "model/network.h"

#include <gtest/gtest.h>

namespace vmonce::model {
namespace {

TEST(Network, IsUserOrANameOrABridge) {
  EXPECT_EQ(ParseNetwork("user"), (Network{NetworkKind::kUser, ""}));
  EXPECT_EQ(ParseNetwork("default"), (Network{NetworkKind::kNamed, "default"}));
  EXPECT_EQ(ParseNetwork("bridge"), (Network{NetworkKind::kNamed, "bridge"}));
  EXPECT_EQ(ParseNetwork("bridge:br0"), (Network{NetworkKind::kBridge, "br0"}));
}

TEST(Network, RefusesWhatIsNoName) {
  for (const char* text : {"", "bridge:", "bridge:a/b", "a b", "-a", ".", "..", "a/b", "a:b", "é",
                           "bridge:-x", "bridge:sixteen-bytes-xx"}) {
    EXPECT_FALSE(ParseNetwork(text)) << text;
  }
  EXPECT_FALSE(ParseNetwork(std::string(64, 'a')));
  EXPECT_TRUE(ParseNetwork(std::string(63, 'a')));
}

}  // namespace
}  // namespace vmonce::model
