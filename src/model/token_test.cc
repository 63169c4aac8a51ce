#include "model/token.h"

#include <gtest/gtest.h>

#include <set>

#include "base/system.h"

namespace vmonce::model {
namespace {

TEST(Token, SecretsHaveTheirFormAndNoTwoAreAlike) {
  const auto random = NewSystemRandom();
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string secret = NewTokenSecret(*random);
    EXPECT_TRUE(IsTokenSecret(secret)) << secret;
    EXPECT_EQ(secret.size(), 4u + 64u);
    EXPECT_TRUE(seen.insert(secret).second);
  }
}

TEST(Token, AnythingElseIsNoSecret) {
  const std::string good = "vmo_" + std::string(64, 'a');
  EXPECT_TRUE(IsTokenSecret(good));
  for (const std::string& text : {std::string(), std::string("vmo_"), good + "0", good.substr(1),
                                  "vmo_" + std::string(64, 'A'), "vmo_" + std::string(64, 'g')}) {
    EXPECT_FALSE(IsTokenSecret(text)) << text;
  }
}

TEST(Token, ThePrefixShowsTwentyFourBitsOnly) {
  EXPECT_EQ(TokenPrefix("vmo_0123456789" + std::string(54, 'f')), "vmo_012345");
}

TEST(Token, LivesUntilItIsRevokedOrExpires) {
  Token token;
  const Time noon = FromUnixMs(1'000'000);
  EXPECT_TRUE(token.IsLive(noon));
  token.expires = noon;
  EXPECT_TRUE(token.IsLive(noon - Milliseconds(1)));
  EXPECT_FALSE(token.IsLive(noon));
  token.expires.reset();
  token.revoked = noon;
  EXPECT_FALSE(token.IsLive(noon - Milliseconds(1)));
}

TEST(Token, RolesAreOrderedAndHaveWords) {
  EXPECT_LT(Role::kViewer, Role::kMember);
  EXPECT_LT(Role::kMember, Role::kAdmin);
  for (const Role role : {Role::kViewer, Role::kMember, Role::kAdmin}) {
    EXPECT_EQ(ParseRole(ToString(role)), role);
  }
  EXPECT_EQ(ParseRole("root"), std::nullopt);
}

TEST(ProjectName, IsPlain) {
  for (const char* name : {"a", "web-1", "Team_A.x"}) EXPECT_TRUE(IsProjectName(name)) << name;
  for (const std::string& name : {std::string(), std::string(".x"), std::string("a b"),
                                  std::string("a/b"), std::string(64, 'a')}) {
    EXPECT_FALSE(IsProjectName(name)) << name;
  }
}

}  // namespace
}  // namespace vmonce::model
