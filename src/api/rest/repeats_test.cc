#include "api/rest/repeats.h"

#include <gtest/gtest.h>

#include <set>

#include "base/system.h"

namespace vmonce::rest {
namespace {

http::Request RequestOf(const std::string& project) {
  http::Request request;
  request.method = "POST";
  request.target = "/v1/vms";
  request.headers.Add("Content-Type", "application/json");
  request.headers.Add("Idempotency-Key", "key-1");
  request.body = R"({"image":"tiny"})";
  request.principal = std::make_shared<const service::Caller>(
      service::Caller{model::ProjectId{project}, model::Role::kMember, std::nullopt});
  return request;
}

RepeatedAnswer AnswerOf(const std::string& body) {
  RepeatedAnswer answer;
  answer.response = *http::Write(http::JsonResponse(200, body));
  return answer;
}

class RepeatsTest : public testing::Test {
 protected:
  std::string Found(Repeats& repeats, std::uint8_t request) {
    const auto answer = repeats.Find(Digest{request});
    return answer ? answer->response.body : "";
  }
  std::unique_ptr<Threads> threads_ = NewSystemThreads();
};

TEST_F(RepeatsTest, GiveTheAnswerThatWasPutLast) {
  Repeats repeats(*threads_, 1 << 20);
  EXPECT_EQ(Found(repeats, 1), "");
  repeats.Put(Digest{1}, AnswerOf("old"));
  repeats.Put(Digest{2}, AnswerOf("other"));
  repeats.Put(Digest{1}, AnswerOf("new"));
  EXPECT_EQ(Found(repeats, 1), "new");
  EXPECT_EQ(Found(repeats, 2), "other");
}

TEST_F(RepeatsTest, HoldNoMoreThanTheirBoundAndDropTheOldestThatWasNotUsed) {
  Repeats repeats(*threads_, 400'000);
  const std::string large(100'000, 'x');
  for (std::uint8_t request = 1; request <= 3; ++request) {
    repeats.Put(Digest{request}, AnswerOf(large));
  }
  EXPECT_EQ(Found(repeats, 1), large) << "a look counts as a use";
  repeats.Put(Digest{4}, AnswerOf(large));
  EXPECT_EQ(Found(repeats, 2), "");
  EXPECT_EQ(Found(repeats, 1), large);
  EXPECT_EQ(Found(repeats, 3), large);
  repeats.Put(Digest{5}, AnswerOf(large));
  EXPECT_EQ(Found(repeats, 4), "");
  EXPECT_EQ(Found(repeats, 5), large);
  repeats.Put(Digest{6}, AnswerOf(std::string(500'000, 'x')));
  EXPECT_EQ(Found(repeats, 6), "") << "larger than all may be";
  EXPECT_EQ(Found(repeats, 5), large);
}

TEST_F(RepeatsTest, ReplacingAnAnswerTakesNoMoreRoomThanTheNewOne) {
  Repeats repeats(*threads_, 250'000);
  const std::string large(100'000, 'x');
  repeats.Put(Digest{1}, AnswerOf(large));
  for (int i = 0; i < 10; ++i) repeats.Put(Digest{2}, AnswerOf(large));
  EXPECT_EQ(Found(repeats, 1), large);
}

TEST(DigestOfCreate, DiffersWithEverythingThatDecidesTheAnswer) {
  std::set<Digest> seen;
  const auto add = [&seen](const http::Request& request) {
    EXPECT_TRUE(seen.insert(DigestOfCreate(request)).second);
  };
  add(RequestOf("one"));
  add(RequestOf("two"));
  http::Request request = RequestOf("one");
  request.target = "/v1/vms?dry_run=true";
  add(request);
  request = RequestOf("one");
  request.body += " ";
  add(request);
  request = RequestOf("one");
  request.headers.Set("Idempotency-Key", "key-2");
  add(request);
  request.headers.Add("Idempotency-Key", "key-1");
  add(request);
  request = RequestOf("one");
  request.headers.Set("Content-Type", "application/json; charset=latin1");
  add(request);
  request = RequestOf("one");
  request.headers.Add("Prefer", "wait=5");
  add(request);
  request = RequestOf("one");
  request.headers.Add("Idempotency-First-Sent", "no date");
  add(request);
  // The same bytes, another header's.
  request = RequestOf("one");
  request.headers.Set("Idempotency-Key", "");
  request.headers.Add("Prefer", "key-1");
  add(request);
}

TEST(DigestOfCreate, IsTheSameWhateverMeansNothingForTheAnswer) {
  http::Request request = RequestOf("one");
  const Digest first = DigestOfCreate(request);
  request.headers.Add("X-Request-Id", "mine");
  request.headers.Add("User-Agent", "curl");
  request.remote_address = "127.0.0.2";
  EXPECT_EQ(DigestOfCreate(request), first);
}

}  // namespace
}  // namespace vmonce::rest
