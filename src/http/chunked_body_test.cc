#include "http/chunked_body.h"

#include <gtest/gtest.h>

#include <string>

namespace vmonce::http {
namespace {

constexpr ChunkedLimits kChunkedLimits{64, 32};

struct Unchunked {
  ChunkedBody::State state;
  std::string body;
  std::string left;  // What was not taken.
  int status = 0;    // Of the refusal.

  bool operator==(const Unchunked&) const = default;
};

Unchunked InPieces(std::string_view bytes, std::size_t step) {
  ChunkedBody chunks(kChunkedLimits);
  Unchunked got{.state = {}, .body = {}, .left = {}};
  while (!bytes.empty() && chunks.state() == ChunkedBody::State::kMore) {
    got.left += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    got.left.erase(0, chunks.Feed(got.left, got.body));
    EXPECT_TRUE(chunks.state() == ChunkedBody::State::kRefused ||
                got.left.size() < kChunkedLimits.max_line_bytes);
  }
  got.left += bytes;
  got.state = chunks.state();
  if (got.state != ChunkedBody::State::kRefused) return got;
  // Where a refusal stands in the bytes means nothing: no other request follows.
  got.left.clear();
  got.status = chunks.refusal().status;
  return got;
}

// The outcome, which must be the same for every step.
Unchunked Read(std::string_view bytes) {
  const Unchunked whole = InPieces(bytes, bytes.size());
  for (std::size_t step = 1; step < bytes.size(); ++step) {
    EXPECT_EQ(InPieces(bytes, step), whole) << bytes << " in pieces of " << step;
  }
  return whole;
}

int StatusOf(std::string_view bytes) { return Read(bytes).status; }

TEST(ChunkedBody, JoinsChunksAndLeavesWhatFollows) {
  const Unchunked got = Read("5\r\nhello\r\n06\r\n world\r\n0\r\n\r\nGET /");
  EXPECT_EQ(got.state, ChunkedBody::State::kComplete);
  EXPECT_EQ(got.body, "hello world");
  EXPECT_EQ(got.left, "GET /");
}

TEST(ChunkedBody, TakesWhatLooksLikeALineForDataInsideAChunk) {
  EXPECT_EQ(Read("7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n").body, "0\r\n\r\n\r\n");
}

TEST(ChunkedBody, ReadsSizesInBothCasesWithLeadingZeros) {
  EXPECT_EQ(Read("a\r\n0123456789\r\n000A\r\n0123456789\r\n00\r\n\r\n").body.size(), 20u);
  EXPECT_EQ(Read("0000000000000001\r\na\r\n0\r\n\r\n").body, "a");
}

TEST(ChunkedBody, DropsExtensionsAndTrailersThatAreWellFormed) {
  for (const std::string_view line : {"1;a", "1;a=b", "1 ; a = b", "1\t;a;b=c;d=\"e\"", "1;a=\"\"",
                                      "1;a=\"b;c=\\\"\\\\\"", "1;a=\"\t \x80\""}) {
    EXPECT_EQ(Read(std::string(line) + "\r\nx\r\n0;z\r\nHost: evil\r\nA:\r\n\r\n").body, "x")
        << line;
  }
}

TEST(ChunkedBody, RefusesWhatIsNoSize) {
  for (const std::string_view line : {"", "x", "-1", "+1", " 1", "0x1", "1 ", "1g", "\"1\"",
                                      "00000000000000001", "10000000000000000"}) {
    EXPECT_EQ(StatusOf(std::string(line) + "\r\nx\r\n0\r\n\r\n"), 400) << line;
  }
}

TEST(ChunkedBody, RefusesMalformedExtensions) {
  for (const std::string_view line :
       {"1;", "1;=b", "1;a=", "1;a b", "1;a;", "1;a=b c", "1;a=b\"c\"", "1;a=\"b\"c", "1;a=\"b",
        "1;a=\"b\\", "1;a=\"b\\\"", "1;a=\"\x01\"", "1;a=\"\\\x7f\"", "1;a\r", "1;a=\"\r\"",
        "1 a"}) {
    EXPECT_EQ(StatusOf(std::string(line) + "\r\nx\r\n0\r\n\r\n"), 400) << line;
  }
}

TEST(ChunkedBody, RefusesABareLineFeedAndWhatIsNotEndedByALine) {
  for (const std::string_view bytes :
       {"1\nx\r\n0\r\n\r\n", "1\r\nx\n0\r\n\r\n", "1\r\nxy\r\n0\r\n\r\n", "1\r\nx0\r\n\r\n",
        "0\r\n\n", "0\r\nA: b\n\r\n", "\n", "\r\n"}) {
    EXPECT_EQ(StatusOf(bytes), 400) << bytes;
  }
}

TEST(ChunkedBody, RefusesMalformedTrailers) {
  for (const std::string_view line : {"A", "A : b", " A: b", "\tb", ": b", "A: b\rc", "A: \x7f"}) {
    EXPECT_EQ(StatusOf("0\r\n" + std::string(line) + "\r\n\r\n"), 400) << line;
  }
}

TEST(ChunkedBody, RefusesALongBodyAtTheChunkThatGoesBeyond) {
  const std::string all(kChunkedLimits.max_body_bytes, 'x');
  EXPECT_EQ(Read("20\r\n" + all + "\r\n0\r\n\r\n").body, all);
  EXPECT_EQ(StatusOf("21\r\n"), 413);
  EXPECT_EQ(StatusOf("20\r\n" + all + "\r\n1\r\n"), 413);
  EXPECT_EQ(StatusOf("FFFFFFFFFFFFFFFF\r\n"), 413);
}

TEST(ChunkedBody, RefusesALongLineWhateverItIs) {
  const std::size_t most = kChunkedLimits.max_line_bytes;
  EXPECT_EQ(StatusOf("0\r\nA:" + std::string(most - 4, 'x') + "\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("0\r\nA:" + std::string(most - 3, 'x') + "\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(std::string(most, '0')), 400);
  EXPECT_EQ(StatusOf(std::string(most, 'x') + "\n"), 400);
}

TEST(ChunkedBody, RefusesManyExtensionsOrTrailersThatAreLongTogether) {
  std::string some;
  for (int i = 0; i < 8; ++i) some += "1;a=bcdef\r\nx\r\n";
  EXPECT_EQ(Read(some + "0\r\n\r\n").body, "xxxxxxxx");
  EXPECT_EQ(StatusOf(some + "1;a\r\n"), 400);
  std::string trailers;
  for (int i = 0; i < 16; ++i) trailers += "A: b\r\n";
  EXPECT_EQ(StatusOf("0\r\n" + trailers + "\r\n"), 0);
  EXPECT_EQ(StatusOf("0\r\n" + trailers + "A: b\r\n\r\n"), 400);
}

}  // namespace
}  // namespace vmonce::http
