#include "api/rest/parse_headers.h"

#include <gtest/gtest.h>

namespace vmonce::rest {
namespace {

using std::chrono::seconds;

http::HeaderList Headers(std::string_view name, const std::vector<std::string>& lines) {
  http::HeaderList headers;
  for (const std::string& line : lines) headers.Add(name, line);
  return headers;
}

TEST(ParseHeaders, PreferWaitIsReadAsRfc7240Says) {
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{}, 0},
      {{"wait=10"}, 10},
      {{"Wait=10"}, 10},
      {{"wait=\"10\""}, 10},
      {{"wait = 10"}, 10},
      {{"respond-async, wait=7"}, 7},
      {{"respond-async", "wait=7"}, 7},
      {{"return=\"a, wait=3\", wait=4"}, 4},
      {{"wait=7; x=1"}, 7},
      {{"wait=7, wait=9"}, 7},
      {{"wait=100000"}, 120},
      // What is not understood is ignored.
      {{"wait"}, 0},
      {{"wait="}, 0},
      {{"wait=-1"}, 0},
      {{"wait=1.5"}, 0},
      {{"wait=99999999999999999999"}, 0},
      {{"waiting=5"}, 0},
      {{""}, 0},
  };
  for (const auto& [lines, wait] : cases) {
    EXPECT_EQ(ParsePrefer(Headers("Prefer", lines)), seconds(wait))
        << (lines.empty() ? "none" : lines.front());
  }
}

TEST(ParseHeaders, IfMatchTakesOneStrongTagOrAStar) {
  EXPECT_EQ(ParseIfMatch({}), std::nullopt);
  EXPECT_EQ(ParseIfMatch(Headers("If-Match", {"*"})), std::nullopt);
  EXPECT_EQ(ParseIfMatch(Headers("If-Match", {"\"7\""})), 7);
  EXPECT_EQ(ParseIfMatch(Headers("If-Match", {" \"7\" "})), 7);
  for (const std::string tag : {"W/\"7\"", "\"07\"", "\"\"", "\"seven\"", "\"-7\"", "\"7,8\""}) {
    EXPECT_EQ(ParseIfMatch(Headers("If-Match", {tag})), kMatchesNothing) << tag;
  }
}

TEST(ParseHeaders, RefusesWhatIsNoEntityTag) {
  for (const std::string line :
       {"7", "", "\"7", "7\"", "'7'", "w/\"7\"", "\"7\", \"8\"", "*, \"7\"", "\"a b\"", "\"7\"x"}) {
    const auto parsed = ParseIfMatch(Headers("If-Match", {line}));
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().code, "invalid_request");
    ASSERT_EQ(parsed.error().fields.size(), 1u);
    EXPECT_EQ(parsed.error().fields[0].pointer, "If-Match");
  }
  EXPECT_FALSE(ParseIfMatch(Headers("If-Match", {"\"7\"", "\"8\""})));
}

TEST(ParseHeaders, IfNoneMatchComparesWeaklyOverAList) {
  const auto is_known = [](const std::vector<std::string>& lines) {
    return IsKnownToClient(Headers("If-None-Match", lines), 7);
  };
  EXPECT_EQ(is_known({}), false);
  EXPECT_EQ(is_known({"*"}), true);
  EXPECT_EQ(is_known({"\"7\""}), true);
  EXPECT_EQ(is_known({"W/\"7\""}), true);
  EXPECT_EQ(is_known({"\"6\", \"7\""}), true);
  EXPECT_EQ(is_known({"\"6\"", "\"7\""}), true);
  EXPECT_EQ(is_known({"\"6\", \"77\""}), false);
  EXPECT_FALSE(is_known({"7"}));
  EXPECT_EQ(EntityTag(7), "\"7\"");
}

TEST(ParseHeaders, BareAndQuotedKeyAreOneKeyAndBadOnesAreNotRepeated) {
  const auto bare = ParseKeyHeader(Headers("Idempotency-Key", {"abc"}));
  const auto quoted = ParseKeyHeader(Headers("idempotency-key", {"\"abc\""}));
  ASSERT_TRUE(bare && quoted && *bare);
  EXPECT_EQ(*bare, *quoted);
  EXPECT_EQ(ParseKeyHeader({}), std::nullopt);
  // report 70
  for (const std::vector<std::string>& lines :
       std::vector<std::vector<std::string>>{{""},
                                             {"\"\""},
                                             {"a", "a"},
                                             {"secret \x01"},
                                             {"secr\xc3\xa9t"},
                                             {"\"secret\"x"},
                                             {std::string(256, 's')}}) {
    const auto key = ParseKeyHeader(Headers("Idempotency-Key", lines));
    ASSERT_FALSE(key) << lines.front();
    EXPECT_EQ(key.error().code, "invalid_idempotency_key");
    EXPECT_EQ(key.error().detail.find("secr"), std::string::npos);
    EXPECT_EQ(key.error().fields.at(0).pointer, "Idempotency-Key");
  }
}

TEST(ParseHeaders, AFirstSendingIsOneHttpDate) {
  const auto sent =
      ParseFirstSent(Headers("Idempotency-First-Sent", {"Sun, 06 Nov 1994 08:49:37 GMT"}));
  EXPECT_EQ(sent, FromUnixMs(784'111'777'000));
  EXPECT_EQ(ParseFirstSent({}), std::nullopt);
  for (const std::vector<std::string>& lines :
       {std::vector<std::string>{""},
        {"784111777"},
        {"Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"}}) {
    const auto refused = ParseFirstSent(Headers("Idempotency-First-Sent", lines));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "invalid_request");
  }
}

http::Request Change(const std::string& body, std::string_view name, const std::string& value) {
  http::Request request;
  request.host = "127.0.0.1:8080";
  request.body = body;
  request.headers.Add(name, value);
  return request;
}

TEST(ParseHeaders, ABodyMustBeJsonInUtf8) {
  for (const std::string type :
       {"application/json", "Application/JSON", "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"", "application/json; profile=x"}) {
    EXPECT_TRUE(CheckSender(Change("{}", "Content-Type", type))) << type;
  }
  for (const std::string type :
       {"text/plain", "application/x-www-form-urlencoded", "application/jsonp",
        "application/merge-patch+json", "application/json; charset=latin1", ""}) {
    const auto checked = CheckSender(Change("{}", "Content-Type", type));
    ASSERT_FALSE(checked) << type;
    EXPECT_EQ(checked.error().code, "unsupported_media_type");
  }
  EXPECT_FALSE(CheckSender(Change("{}", "Accept", "*/*")));
  http::Request two = Change("{}", "Content-Type", "application/json");
  two.headers.Add("Content-Type", "application/json");
  EXPECT_FALSE(CheckSender(two));
}

TEST(ParseHeaders, WithoutABodyTheOriginMustBeTheHost) {
  EXPECT_TRUE(CheckSender(Change("", "Accept", "*/*")));
  EXPECT_TRUE(CheckSender(Change("", "Origin", "http://127.0.0.1:8080")));
  for (const std::string origin : {"http://127.0.0.1:3000", "http://evil.example", "null", "",
                                   "http://127.0.0.1:8080.evil.example", "file://127.0.0.1:8080"}) {
    const auto checked = CheckSender(Change("", "Origin", origin));
    ASSERT_FALSE(checked) << origin;
    EXPECT_EQ(checked.error().code, "origin_not_allowed");
  }
}

}  // namespace
}  // namespace vmonce::rest
