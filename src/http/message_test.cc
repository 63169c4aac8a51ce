#include "http/message.h"

#include <gtest/gtest.h>

#include <chrono>

#include "http/host.h"
#include "http/response_writer.h"

namespace vmonce::http {
namespace {

TEST(PercentDecode, DecodesWhatIsWellFormed) {
  struct Case {
    std::string_view text;
    DecodeAs as;
    std::string_view decoded;
  };
  const Case kCases[] = {
      {"", DecodeAs::kPath, ""},
      {"plain-text_1.~", DecodeAs::kPath, "plain-text_1.~"},
      {"a%20b", DecodeAs::kPath, "a b"},
      {"a+b", DecodeAs::kPath, "a+b"},
      {"a+b", DecodeAs::kQuery, "a b"},
      {"a%2Bb", DecodeAs::kQuery, "a+b"},
      {"%2f%2F", DecodeAs::kPath, "//"},
      {"%25", DecodeAs::kPath, "%"},
      {"%2525", DecodeAs::kPath, "%25"},
      {"%C3%A4", DecodeAs::kPath, "\xc3\xa4"},
      {"%F0%9F%98%80", DecodeAs::kPath, "\xf0\x9f\x98\x80"},
      {"%F4%8F%BF%BF", DecodeAs::kPath, "\xf4\x8f\xbf\xbf"},
  };
  for (const Case& one : kCases) {
    const Result<std::string> decoded = PercentDecode(one.text, one.as);
    ASSERT_TRUE(decoded.has_value()) << one.text;
    EXPECT_EQ(*decoded, one.decoded) << one.text;
  }
}

TEST(PercentDecode, RefusesBadEscapesControlBytesAndWhatIsNotUtf8) {
  for (const std::string_view text :
       {"%",         "%4",           "a%",           "%zz",          "%4g",    "%g4",
        "%%41",      "%00",          "a%0ab",        "%0D%0A",       "%7f",    "%1F",
        "\t",        "%80",          "%C3",          "%C3%28",       "%C0%AF", "%E0%80%AF",
        "%ED%A0%80", "%F0%80%80%80", "%F4%90%80%80", "%F5%80%80%80", "%FF",    "%E2%82"}) {
    const Result<std::string> decoded = PercentDecode(text, DecodeAs::kPath);
    ASSERT_FALSE(decoded.has_value()) << text;
    EXPECT_EQ(decoded.error().code, ErrorCode::kInvalid);
  }
}

Request Parsed(std::string_view target) {
  Request request;
  request.target = target;
  const Status parsed = ParseTarget(request);
  EXPECT_TRUE(parsed.has_value()) << target;
  return request;
}

TEST(ParseTarget, SplitsPathAndQueryAndKeepsOrderAndDuplicates) {
  const Request request = Parsed("/v1/vms/a%20b?name=x&label=1&label=2&flag&empty=&q=a%3Db+c&&e==");
  EXPECT_EQ(request.path, "/v1/vms/a%20b");
  const std::vector<NamedValue> expected = {{"name", "x"}, {"label", "1"}, {"label", "2"},
                                            {"flag", ""},  {"empty", ""},  {"q", "a=b c"},
                                            {"e", "="}};
  EXPECT_EQ(request.query, expected);
  EXPECT_EQ(*request.QueryParam("label"), "1");
  EXPECT_EQ(request.QueryParam("absent"), nullptr);
}

TEST(ParseTarget, NormalisesNothing) {
  EXPECT_EQ(Parsed("/a/../b//./c/").path, "/a/../b//./c/");
  EXPECT_EQ(Parsed("//evil/x").path, "//evil/x");
  EXPECT_EQ(Parsed("/?").path, "/");
  EXPECT_EQ(Parsed("*").path, "*");
}

TEST(ParseTarget, TakesTheHostOfAnAbsoluteTarget) {
  const Request request = Parsed("HTTP://Example:81/a?b=c");
  EXPECT_EQ(request.host, "Example:81");
  EXPECT_EQ(request.path, "/a");
  EXPECT_EQ(*request.QueryParam("b"), "c");
  EXPECT_EQ(Parsed("http://example").path, "/");
  EXPECT_EQ(*Parsed("http://example?b=c").QueryParam("b"), "c");
}

TEST(ParseTarget, RefusesWhatIsNoTarget) {
  for (const std::string_view target :
       {"", "v1/vms", "example:80", "ftp://example/", "http:///a", "http://user@example/", "/a#b",
        "/a b", "/\xc3\xa4", "/a\x01", "/%", "/a?b=%zz", "/a?%0a=b", "?a=b"}) {
    Request request;
    request.target = target;
    EXPECT_FALSE(ParseTarget(request).has_value()) << target;
  }
}

TEST(HeaderList, FindsWithoutRegardToCaseAndKeepsTheOrder) {
  HeaderList headers;
  headers.Add("Via", "1");
  headers.Add("Host", "localhost");
  headers.Add("VIA", "2");
  EXPECT_EQ(headers.Find("via"), "1");
  EXPECT_EQ(headers.All("vIa"), (std::vector<std::string_view>{"1", "2"}));
  EXPECT_EQ(headers.Count("via"), 2u);
  EXPECT_EQ(headers.Find("absent"), std::nullopt);
  headers.Set("via", "3");
  EXPECT_EQ(headers.All("Via"), std::vector<std::string_view>{"3"});
  EXPECT_EQ(headers.size(), 2u);
  const HeaderList copy = headers;
  headers.Clear();
  EXPECT_EQ(copy.Find("host"), "localhost");
  EXPECT_EQ(headers.size(), 0u);
}

TEST(HeaderList, TellsLinesThatWouldStartAnother) {
  EXPECT_TRUE(IsValidHeader("Location", "/v1/vms\t\xc3\xa4"));
  EXPECT_FALSE(IsValidHeader("Location", "/a\r\nSet-Cookie: b"));
  EXPECT_FALSE(IsValidHeader("Location", std::string_view("a\0b", 3)));
  EXPECT_FALSE(IsValidHeader("Lo cation", "a"));
  EXPECT_FALSE(IsValidHeader("", "a"));
}

TEST(MediaType, DropsParametersAndCase) {
  EXPECT_EQ(MediaType(" Application/JSON ; charset=utf-8"), "application/json");
  EXPECT_EQ(MediaType("text/plain"), "text/plain");
  EXPECT_EQ(MediaType(""), "");
  EXPECT_EQ(MediaType(" ;"), "");
}

TEST(Host, NamesAreTakenOutOfWellFormedAuthoritiesOnly) {
  EXPECT_EQ(HostName("LocalHost"), "localhost");
  EXPECT_EQ(HostName("localhost:8080"), "localhost");
  EXPECT_EQ(HostName("localhost:"), "localhost");
  EXPECT_EQ(HostName("[::1]:8080"), "[::1]");
  EXPECT_EQ(HostName("[::FFFF]"), "[::ffff]");
  for (const std::string_view bad :
       {"", ":80", "localhost:80a", "localhost:123456", "a b", "a,b", "user@localhost", "[::1",
        "[]", "[::1]x", "[evil]", "::1", "localhost/", "localhost:80:80"}) {
    EXPECT_EQ(HostName(bad), std::nullopt) << bad;
  }
}

TEST(Host, OnlyLoopbackIsAllowedByDefault) {
  const std::vector<std::string> allowed = LoopbackHosts();
  EXPECT_TRUE(IsAllowedHost("localhost", allowed));
  EXPECT_TRUE(IsAllowedHost("127.0.0.1:8080", allowed));
  EXPECT_TRUE(IsAllowedHost("[::1]:1", allowed));
  for (const std::string_view foreign : {"example.com", "localhost.", "localhost.example.com",
                                         "127.0.0.1.example.com", "127.0.0.2", "0.0.0.0"}) {
    EXPECT_FALSE(IsAllowedHost(foreign, allowed)) << foreign;
  }
}

TEST(Host, AnOriginIsOfHttpOrOfNobody) {
  EXPECT_EQ(OriginAuthority("http://localhost:8080"), "localhost:8080");
  EXPECT_EQ(OriginAuthority("https://127.0.0.1"), "127.0.0.1");
  for (const std::string_view none : {"null", "", "localhost", "file://localhost"}) {
    EXPECT_EQ(OriginAuthority(none), "") << none;
  }
  EXPECT_FALSE(IsAllowedHost(OriginAuthority("http://localhost/path"), LoopbackHosts()));
  EXPECT_FALSE(IsAllowedHost("", LoopbackHosts()));
}

TEST(DateText, WritesAnImfFixdate) {
  DateText date;
  const auto moment = std::chrono::sys_days(std::chrono::November / 6 / 1994) +
                      std::chrono::hours(8) + std::chrono::minutes(49) + std::chrono::seconds(37);
  EXPECT_EQ(date.At(moment), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.At(moment + Milliseconds(999)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.At(moment + Milliseconds(1000)), "Sun, 06 Nov 1994 08:49:38 GMT");
}

TEST(AppendHead, AddsTheServersOwnHeadersAndDropsTheHandlersWordOnThem) {
  Response response = JsonResponse(202, "{}");
  response.headers.Add("Content-Length", "7");
  response.headers.Add("connection", "upgrade");
  response.headers.Add("Transfer-Encoding", "chunked");
  std::string out;
  AppendHead(out, response, {"THEDATE", "THEID", true, true});
  EXPECT_EQ(out,
            "HTTP/1.1 202 Accepted\r\nDate: THEDATE\r\nX-Request-Id: THEID\r\n"
            "Content-Type: application/json\r\nCache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\nContent-Length: 2\r\n\r\n");
}

TEST(AppendHead, LetsTheHandlerChooseCachingAndGives204NoLength) {
  Response response;
  response.status = 204;
  response.headers.Add("cache-control", "max-age=60");
  std::string out;
  AppendHead(out, response, {"D", "I", true, false});
  EXPECT_EQ(out,
            "HTTP/1.1 204 No Content\r\nDate: D\r\nX-Request-Id: I\r\ncache-control: max-age=60\r\n"
            "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace vmonce::http
