#include "http/request_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace vmonce::http {
namespace {

constexpr ParserLimits kLimits{512, 64};
using State = RequestParser::State;

// Feeds `bytes` in pieces of `step`, as a connection does.
State FeedAll(RequestParser& parser, std::string_view bytes, std::size_t step) {
  std::string held;
  while (!bytes.empty() && (parser.state() == State::kHeader || parser.state() == State::kBody)) {
    held += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    held.erase(0, parser.Feed(held));
    EXPECT_TRUE(parser.state() == State::kRefused || held.size() < kLimits.max_header_bytes);
  }
  return parser.state();
}

int Refusal(std::string_view bytes) {
  RequestParser parser(kLimits);
  if (FeedAll(parser, bytes, bytes.size()) != State::kRefused) return 0;
  RequestParser bytewise(kLimits);
  EXPECT_EQ(FeedAll(bytewise, bytes, 1), State::kRefused) << bytes;
  EXPECT_EQ(bytewise.refusal().code, parser.refusal().code) << bytes;
  return parser.refusal().status;
}

TEST(RequestParser, ReadsTheSameRequestHoweverItIsCut) {
  const std::string bytes =
      "\r\nPOST /v1/vms?a=b HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nx-a:  2 \r\n"
      "Content-Length: 5\r\n\r\nhello";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    RequestParser parser(kLimits);
    ASSERT_EQ(FeedAll(parser, bytes, step), State::kComplete) << step;
    const Request& request = parser.request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/vms");
    EXPECT_EQ(request.host, "localhost");
    EXPECT_EQ(request.headers.All("X-A"), (std::vector<std::string_view>{"1", "2"}));
    EXPECT_EQ(request.body, "hello");
    EXPECT_TRUE(parser.wants_keep_alive());
  }
}

TEST(RequestParser, ReadsAChunkedBodyHoweverItIsCut) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string chunks[] = {
      "5\r\nhello\r\n6;ext=\"x\"\r\n world\r\n0\r\n\r\n",
      "b\r\nhello world\r\n000\r\nHost: evil\r\nX-Trailer: 1\r\n\r\n",
  };
  for (const std::string& body : chunks) {
    for (std::size_t step = 1; step <= head.size() + body.size(); ++step) {
      RequestParser parser(kLimits);
      ASSERT_EQ(FeedAll(parser, head + body, step), State::kComplete) << body << step;
      EXPECT_EQ(parser.request().body, "hello world");
      EXPECT_EQ(parser.request().headers.Count("host"), 1u);
      EXPECT_EQ(parser.request().headers.Count("x-trailer"), 0u);
    }
  }
}

// A proxy in front reads a chunk's line one way; whoever reads it another way, or as the packets
// fall, lets one request hide in another.
TEST(RequestParser, RefusesAChunkedBodyThatCouldBeReadTwoWaysHoweverItIsCut) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string_view bodies[] = {
      "6;ext=\"llo\r\n6;exd\r\n0\r\n5\r\n",
      "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n",
      "5;a=\"b\\\r\n\"\r\nhello\r\n0\r\n\r\n",
      "0;a=\"\r\n\r\n\"\r\n\r\n",
      "5\nhello\r\n0\r\n\r\n",
      "5\rX\nhello\r\n0\r\n\r\n",
      "5;a\nhello\r\n0\r\n\r\n",
      "5\r\nhello\n0\r\n\r\n",
      "5\r\nhello0\r\n\r\n",
      "0\r\nA: b\n\r\n",
      "0\r\nA: b\r\n c\r\n\r\n",
      "0\r\nA\r\n\r\n",
      "0\r\nA : b\r\n\r\n",
  };
  for (const std::string_view body : bodies) {
    for (std::size_t step = 1; step <= head.size() + body.size(); ++step) {
      RequestParser parser(kLimits);
      ASSERT_EQ(FeedAll(parser, head + std::string(body), step), State::kRefused) << body << step;
      ASSERT_EQ(parser.refusal().status, 400) << body << step;
    }
  }
}

TEST(RequestParser, TakesAnEmptyChunkedBodyByteByByte) {
  RequestParser parser(kLimits);
  EXPECT_EQ(FeedAll(parser,
                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1),
            State::kComplete);
  EXPECT_EQ(parser.request().body, "");
}

TEST(RequestParser, LeavesTheNextRequestsBytes) {
  const std::string one = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
  const std::string two = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
  RequestParser parser(kLimits);
  EXPECT_EQ(parser.Feed(one + two), one.size());
  ASSERT_EQ(parser.state(), State::kComplete);
  parser.Reset();
  EXPECT_EQ(parser.Feed(two), two.size());
  ASSERT_EQ(parser.state(), State::kComplete);
  EXPECT_EQ(parser.request().path, "/b");
  EXPECT_EQ(parser.request().body, "");
}

TEST(RequestParser, TellsKeepAliveAndVersion) {
  struct Case {
    std::string bytes;
    bool keeps;
  };
  for (const Case& one : {Case{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
                          Case{"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", false},
                          Case{"GET / HTTP/1.0\r\n\r\n", false},
                          Case{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true}}) {
    RequestParser parser(kLimits);
    ASSERT_EQ(FeedAll(parser, one.bytes, one.bytes.size()), State::kComplete);
    EXPECT_EQ(parser.wants_keep_alive(), one.keeps) << one.bytes;
  }
}

TEST(RequestParser, RefusesMalformedRequests) {
  struct Case {
    int status;
    std::string bytes;
  };
  const Case kCases[] = {
      {400, "\x16\x03\x01"},
      {400, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
      {400, "GET /\r\nHost: a\r\n\r\n"},
      {400, "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET / HTTP/1.1\nHost: a\n\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n"},
      {400, std::string("GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n", 35)},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
      {400, "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /a?b=%ff HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\na"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"},
      {400,
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0"},
      {400,
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n"},
      {400, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"},
      {501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"},
      {505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
      {505, "PRI * HTTP/2.0\r\n\r\n"},
      {417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n"},
  };
  for (const Case& one : kCases) EXPECT_EQ(Refusal(one.bytes), one.status) << one.bytes;
}

TEST(RequestParser, RefusesALongHeaderWithoutHoldingIt) {
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nA: ";
  EXPECT_EQ(Refusal(start + std::string(2000, 'x')), 431);
  EXPECT_EQ(Refusal("GET /" + std::string(2000, 'x')), 431);
  const std::size_t fits = kLimits.max_header_bytes - start.size() - 4;
  EXPECT_EQ(Refusal(start + std::string(fits, 'x') + "\r\n\r\n"), 0);
  EXPECT_EQ(Refusal(start + std::string(fits + 1, 'x') + "\r\n\r\n"), 431);
}

// What is wrong with it beyond the limit may have arrived, or may not.
TEST(RequestParser, RefusesALongHeaderForItsLengthWhateverFollows) {
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string fill(kLimits.max_header_bytes, 'x');
  for (const char* end : {"\n", "\r\n folded\r\n\r\n", "\r\n\r\n"}) {
    EXPECT_EQ(Refusal(start + fill + end), 431) << end;
  }
  EXPECT_EQ(Refusal(start + "\n" + fill), 400);
}

TEST(RequestParser, RefusesALongBodyByItsLengthAlone) {
  const std::string start = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ";
  EXPECT_EQ(Refusal(start + "64\r\n\r\n"), 0);
  EXPECT_EQ(Refusal(start + "65\r\n\r\n"), 413);
  EXPECT_EQ(Refusal(start + "18446744073709551615\r\n\r\n"), 413);
}

TEST(RequestParser, RefusesALongChunkedBodyAtTheChunkThatGoesBeyond) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(Refusal(head + "40\r\n" + std::string(64, 'x') + "\r\n0\r\n\r\n"), 0);
  EXPECT_EQ(Refusal(head + "41\r\n"), 413);
  EXPECT_EQ(Refusal(head + "40\r\n" + std::string(64, 'x') + "\r\n1\r\n"), 413);
  EXPECT_EQ(Refusal(head + "FFFFFFFFFFFFFFFF\r\n"), 413);
  EXPECT_EQ(Refusal(head + "10000000000000000\r\n"), 400);
  EXPECT_EQ(Refusal(head + "1;" + std::string(2000, 'x')), 400);
  EXPECT_EQ(Refusal(head + "0\r\nA: " + std::string(2000, 'x')), 400);
}

TEST(RequestParser, TellsWhoWaitsForContinue) {
  const std::string start = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n";
  RequestParser waits(kLimits);
  EXPECT_EQ(FeedAll(waits, start + "Content-Length: 1\r\n\r\n", 1000), State::kBody);
  EXPECT_TRUE(waits.wants_continue());
  RequestParser has_none(kLimits);
  EXPECT_EQ(FeedAll(has_none, start + "\r\n", 1000), State::kComplete);
  EXPECT_FALSE(has_none.wants_continue());
}

}  // namespace
}  // namespace vmonce::http
