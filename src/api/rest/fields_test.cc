#include "api/rest/fields.h"

#include <gtest/gtest.h>

namespace vmonce::rest {
namespace {

TEST(Fields, HostNamesAreThoseOfRfc1123) {
  for (const std::string name : {"a", "A-1", "web.example.com", "3com", "123", "1.a"}) {
    EXPECT_TRUE(IsValidHostname(name)) << name;
  }
  const std::string label(63, 'x');
  EXPECT_TRUE(IsValidHostname(label));
  EXPECT_FALSE(IsValidHostname(label + "x"));
  EXPECT_TRUE(IsValidHostname(label + "." + label + "." + label + "." + std::string(61, 'x')));
  EXPECT_FALSE(IsValidHostname(label + "." + label + "." + label + "." + std::string(62, 'x')));
  for (const std::string name :
       {"", ".", "a.", ".a", "a..b", "-a", "a-", "a_b", "a b", "a\n", "10.0.0.1", "ä"}) {
    EXPECT_FALSE(IsValidHostname(name)) << name;
  }
}

TEST(Fields, SshKeysAreOneLineOfAKnownForm) {
  for (const std::string line :
       {"ssh-ed25519 AAAA", "ssh-rsa AAAA me@here and more", "ecdsa-sha2-nistp256 AAAA",
        "sk-ssh-ed25519@openssh.com AAAA=== x"}) {
    EXPECT_EQ(IsValidSshKey(line), line.find("===") == std::string::npos) << line;
  }
  for (const std::string line :
       {"", "ssh-rsa", "ssh-rsa ", "ssh-rsa  AAAA", "ssh-rsa AAA", "rsa AAAA", " ssh-rsa AAAA",
        "ssh-rsa AAAA\n", "ssh-rsa AAAA\nssh-rsa BBBB", "ssh-rsa\tAAAA",
        "command=\"x\" ssh-rsa AAAA", "ssh-rsa A*AA"}) {
    EXPECT_FALSE(IsValidSshKey(line)) << line;
  }
}

}  // namespace
}  // namespace vmonce::rest
