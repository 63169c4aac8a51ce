#include "base/sha256.h"

#include <gtest/gtest.h>

namespace vmonce {
namespace {

TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(ToHex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(HmacSha256, MatchesRfc4231) {
  EXPECT_EQ(ToHex(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(ToHex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(ToHex(HmacSha256(std::string(131, '\xaa'),
                             "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacSha256, TakesAnEmptyKeyAndEmptyData) {
  EXPECT_EQ(ToHex(HmacSha256({}, {})),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Digest, ParsesOnlyLowerCaseHexOfItsOwnLength) {
  const Digest digest = Sha256("abc");
  const std::string hex = ToHex(digest);
  EXPECT_EQ(ParseDigest(hex), digest);
  EXPECT_EQ(ParseDigest(hex.substr(2)), std::nullopt);
  EXPECT_EQ(ParseDigest(hex + "00"), std::nullopt);
  EXPECT_EQ(ParseDigest("B" + hex.substr(1)), std::nullopt);
  EXPECT_EQ(ParseDigest("g" + hex.substr(1)), std::nullopt);
  EXPECT_EQ(ParseDigest(""), std::nullopt);
}

TEST(Base64, MatchesRfc4648) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [data, text] : vectors) {
    EXPECT_EQ(ToBase64(data), text);
    EXPECT_EQ(ParseBase64(text), data) << text;
  }
}

TEST(Base64, CarriesEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  for (std::size_t length = 0; length <= all.size(); ++length) {
    const std::string data = all.substr(all.size() - length);
    EXPECT_EQ(ParseBase64(ToBase64(data)), data) << length;
  }
}

TEST(Base64, RefusesWhatIsNotTheExactEncoding) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "=", "==", "====", "Zh==", "Zm9=", "Zm 9v",
                           "Zm9v\n", "Zm-_", "Z===", "Zg==Zg==", "Zm9v===="}) {
    EXPECT_EQ(ParseBase64(text), std::nullopt) << text;
  }
}

TEST(EqualInConstantTime, ComparesLengthAndBytes) {
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abcd"));
  EXPECT_FALSE(EqualInConstantTime("", "a"));
}

}  // namespace
}  // namespace vmonce
