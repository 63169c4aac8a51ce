#include "model/idempotency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/limits.h"

namespace vmonce::model {
namespace {

// The key of one header line; "" stands for kInvalid, which no key can be.
std::string KeyOf(std::string_view line) {
  const auto key = ParseKey(std::vector<std::string_view>{line});
  if (!key) {
    EXPECT_EQ(key.error().code, ErrorCode::kInvalid) << line;
    return "";
  }
  EXPECT_TRUE(key->has_value()) << line;
  return (*key)->value;
}

// The same key as a quoted Structured Field string.
std::string Quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text.push_back('\\');
    text.push_back(c);
  }
  return text + "\"";
}

TEST(Key, IsAbsentWithoutAHeader) {
  const auto key = ParseKey({});
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(*key, std::nullopt);
}

TEST(Key, IsTheSameBareAndQuoted) {
  EXPECT_EQ(KeyOf("abc"), "abc");
  EXPECT_EQ(KeyOf("\"abc\""), "abc");
  EXPECT_EQ(KeyOf("8e03978e-40d5-43dd-bc93-6894a57f9324"), "8e03978e-40d5-43dd-bc93-6894a57f9324");
  EXPECT_EQ(KeyHash(IdempotencyKey{KeyOf("abc")}), KeyHash(IdempotencyKey{KeyOf("\"abc\"")}));
}

TEST(Key, KnowsTheTwoEscapesOfAQuotedString) {
  EXPECT_EQ(KeyOf(R"("a\"b")"), R"(a"b)");
  EXPECT_EQ(KeyOf(R"("a\\b")"), R"(a\b)");
  EXPECT_EQ(KeyOf(R"("\\")"), R"(\)");
  EXPECT_EQ(KeyOf(R"("a\nb")"), "");
  EXPECT_EQ(KeyOf(R"("a\")"), "");
  EXPECT_EQ(KeyOf(R"("a\)"), "");
  // A bare token has no escapes.
  EXPECT_EQ(KeyOf(R"(a\b)"), R"(a\b)");
  EXPECT_EQ(KeyOf(R"(a"b)"), R"(a"b)");
}

TEST(Key, DropsWhiteSpaceAroundTheValue) {
  EXPECT_EQ(KeyOf(" \tabc \t"), "abc");
  EXPECT_EQ(KeyOf(" \"abc\" "), "abc");
  EXPECT_EQ(KeyOf("\" abc \""), " abc ") << "inside the quotes it belongs to the key";
}

TEST(Key, HoldsSpacesOnlyWhenQuoted) {
  EXPECT_EQ(KeyOf("\"a b\""), "a b");
  EXPECT_EQ(KeyOf("a b"), "");
  EXPECT_EQ(KeyOf("a, b"), "") << "two header lines that someone joined";
}

TEST(Key, IsNeverEmpty) {
  EXPECT_EQ(KeyOf(""), "");
  EXPECT_EQ(KeyOf("   "), "");
  EXPECT_EQ(KeyOf("\"\""), "");
}

TEST(Key, MayHave255Bytes) {
  const std::string longest(limits::kKeyBytes, 'k');
  EXPECT_EQ(KeyOf(longest), longest);
  EXPECT_EQ(KeyOf(Quoted(longest)), longest);
  EXPECT_EQ(KeyOf(longest + "k"), "");
  EXPECT_EQ(KeyOf(Quoted(longest + "k")), "");
  // It is the unquoted bytes that count.
  const std::string quotes(limits::kKeyBytes, '"');
  EXPECT_EQ(KeyOf(Quoted(quotes)), quotes);
}

TEST(Key, AllowsNothingAfterTheClosingQuote) {
  for (const char* line : {"\"abc\"x", "\"abc\";a=1", "\"abc\" ;a", "\"abc\", \"def\"",
                           "\"abc\",\"abc\"", "\"abc\"\"", "\"abc", "\"", "\"abc\" x"}) {
    EXPECT_EQ(KeyOf(line), "") << line;
  }
}

TEST(Key, StandsInOneHeaderLine) {
  const std::vector<std::string_view> twice = {"abc", "abc"};
  ASSERT_FALSE(ParseKey(twice).has_value());
  EXPECT_EQ(ParseKey(twice).error().code, ErrorCode::kInvalid);
}

// report 70
TEST(Key, HoldsPrintableAsciiOnly) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string value = std::string("a") + static_cast<char>(byte) + "b";
    const bool is_printable = byte >= 0x20 && byte <= 0x7e;
    EXPECT_EQ(KeyOf(Quoted(value)), is_printable ? value : "") << byte;
    EXPECT_EQ(KeyOf(value), is_printable && byte != ' ' ? value : "") << byte;
  }
}

// report 70
TEST(Key, IsNotRepeatedByTheErrorAboutIt) {
  for (const char* line : {"\"secret\"x", "secret \x01", "secret\ninjected", "\"sec\\ret\"",
                           "secret secret", "\"secret"}) {
    const auto key = ParseKey(std::vector<std::string_view>{line});
    ASSERT_FALSE(key.has_value()) << line;
    EXPECT_EQ(key.error().detail.find("secret"), std::string::npos) << key.error().detail;
    EXPECT_EQ(key.error().detail.find('\n'), std::string::npos);
  }
}

TEST(Key, SurvivesQuotingWhateverItIs) {
  std::mt19937_64 chance(20240603);
  for (int round = 0; round < 500; ++round) {
    std::string value;
    const std::size_t length = 1 + chance() % limits::kKeyBytes;
    while (value.size() < length) value.push_back(static_cast<char>(0x20 + chance() % 95));
    EXPECT_EQ(KeyOf(Quoted(value)), value);
  }
}

TEST(Key, IsHashedAsItsBytes) {
  // The known SHA-256 of "abc" (FIPS 180-4's example).
  EXPECT_EQ(ToHex(KeyHash(IdempotencyKey{"abc"})),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_NE(KeyHash(IdempotencyKey{"abc"}), KeyHash(IdempotencyKey{"Abc"}));
}

TEST(Key, ShowsAtMostSevenCharactersAndNeverMoreThanHalf) {
  EXPECT_EQ(RedactedPrefix(IdempotencyKey{"8e03978e-40d5-43dd"}), "8e03978…");
  EXPECT_EQ(RedactedPrefix(IdempotencyKey{"12345678"}), "1234…");
  EXPECT_EQ(RedactedPrefix(IdempotencyKey{"ab"}), "a…");
  EXPECT_EQ(RedactedPrefix(IdempotencyKey{"a"}), "…");
}

// --- Fingerprint

RequestImage Request(std::string_view body) {
  RequestImage request;
  request.method = "POST";
  request.route = "/v1/vms";
  auto value = ParseStrictJson(body);
  EXPECT_TRUE(value.has_value()) << body;
  if (value) request.body = *std::move(value);
  return request;
}

Digest Print(std::string_view body) { return Fingerprint(Request(body)); }

TEST(Fingerprint, IsTheHashOfTheCanonicalArray) {
  RequestImage request = Request(R"({ "b": 2, "a": 1.0 })");
  request.query = {{"z", "1"}, {"a", "\"x\""}};
  const std::string expected = R"([1,"POST","/v1/vms",[["a","\"x\""],["z","1"]],{"a":1,"b":2}])";
  EXPECT_EQ(Fingerprint(request), Sha256(expected));
  // And that text is canonical itself.
  EXPECT_EQ(CanonicalJson(ParseStrictJson(expected).value()), expected);
}

TEST(Fingerprint, TakesNoBodyAsNull) {
  RequestImage request;
  request.method = "DELETE";
  request.route = "/v1/vms/x";
  EXPECT_EQ(Fingerprint(request), Sha256(R"([1,"DELETE","/v1/vms/x",[],null])"));
}

// report 74
TEST(Fingerprint, IsOneForAllSpellingsOfOneBody) {
  const Digest first = Print(R"({"a":1,"b":[2,"é"],"c":{"x":0,"y":"/"}})");
  for (const char* same : {
           R"({"b":[2,"é"],"c":{"y":"/","x":0},"a":1})",
           "\t{ \"a\" : 1 ,\r\n \"b\" : [ 2 , \"é\" ], \"c\":{\"x\":0,\"y\":\"/\"} }\n",
           R"({"a":1.0,"b":[2e0,"é"],"c":{"x":-0.0,"y":"/"}})",
           R"({"a":10e-1,"b":[0.2E1,"\u00e9"],"c":{"x":-0,"y":"\/"}})",
           R"({"\u0061":1,"b":[2,"\u00E9"],"c":{"x":0e5,"y":"\u002f"}})",
       }) {
    EXPECT_EQ(Print(same), first) << same;
  }
}

// report 74
TEST(Fingerprint, DiffersWhereverTheMeaningDiffers) {
  const Digest first = Print(R"({"a":1,"b":[1,2]})");
  for (const char* other : {
           R"({"a":1,"b":[2,1]})",           // Arrays keep their order.
           R"({"a":2,"b":[1,2]})",           // A value.
           R"({"a":"1","b":[1,2]})",         // A kind.
           R"({"a":true,"b":[1,2]})",        // A kind.
           R"({"A":1,"b":[1,2]})",           // A name.
           R"({"a":1})",                     // A member less.
           R"({"a":1,"b":[1,2],"c":null})",  // A member more, be it null.
           R"({"a":1,"b":[[1,2]]})",         // Nesting.
           R"({"a":1,"b":[1,2,2]})",         // An element more.
           R"([{"a":1,"b":[1,2]}])",         // Nesting of all.
           "null",
       }) {
    EXPECT_NE(Print(other), first) << other;
  }
  // Looks alike and is another text: composed and decomposed.
  EXPECT_NE(Print(R"({"a":"\u00e9"})"), Print(R"({"a":"e\u0301"})"));
}

// report 74
TEST(Fingerprint, DoesNotSeeTheOrderOfMembersHoweverMany) {
  std::vector<std::string> members;
  for (int i = 0; i < 20; ++i) {
    members.push_back("\"m" + std::to_string(i * 7) + "\":" + std::to_string(i));
  }
  const auto body_of = [&members] {
    std::string body = "{";
    for (const std::string& member : members) body += (body.size() > 1 ? "," : "") + member;
    return body + "}";
  };
  const Digest first = Print(body_of());
  std::mt19937_64 chance(20240604);
  for (int round = 0; round < 50; ++round) {
    std::ranges::shuffle(members, chance);
    EXPECT_EQ(Print(body_of()), first);
  }
}

// report 76
TEST(Fingerprint, IncludesTheQuery) {
  RequestImage request = Request("{}");
  const Digest without = Fingerprint(request);
  request.query = {{"force", "true"}};
  const Digest with = Fingerprint(request);
  EXPECT_NE(with, without);
  request.query = {{"force", "false"}};
  EXPECT_NE(Fingerprint(request), with);
  request.query = {{"force", ""}};
  EXPECT_NE(Fingerprint(request), without);
}

// report 76
TEST(Fingerprint, SortsTheQueryByNameAndKeepsTheOrderOfValues) {
  RequestImage request = Request("{}");
  request.query = {{"a", "1"}, {"a", "2"}, {"b", "0"}};
  const Digest first = Fingerprint(request);
  request.query = {{"b", "0"}, {"a", "1"}, {"a", "2"}};
  EXPECT_EQ(Fingerprint(request), first);
  request.query = {{"a", "1"}, {"b", "0"}, {"a", "2"}};
  EXPECT_EQ(Fingerprint(request), first);
  request.query = {{"a", "2"}, {"a", "1"}, {"b", "0"}};
  EXPECT_NE(Fingerprint(request), first);
}

TEST(Fingerprint, CannotBeForgedByMovingTextBetweenItsParts) {
  RequestImage one = Request("null");
  one.query = {{"a", "b\",\"c"}};
  RequestImage two = Request("null");
  two.query = {{"a\",\"b", "c"}};
  EXPECT_NE(Fingerprint(one), Fingerprint(two));
  RequestImage three = Request("null");
  three.route = "/v1/vms\",[[\"a";
  EXPECT_NE(Fingerprint(one), Fingerprint(three));
}

// The same key on another route is a mismatch, never a second effect.
TEST(Fingerprint, IncludesMethodAndRoute) {
  const Digest first = Print("{}");
  RequestImage request = Request("{}");
  request.method = "PATCH";
  EXPECT_NE(Fingerprint(request), first);
  request = Request("{}");
  request.route = "/v1/vms/0190/start";
  EXPECT_NE(Fingerprint(request), first);
}

TEST(CanonicalRequest, KeepsEveryPartForALaterVersion) {
  RequestImage request = Request(R"({"b":[1.50,"\u00e9"],"a":{}})");
  request.query = {{"z", "1"}, {"a", "2"}};
  EXPECT_EQ(CanonicalRequest(request), R"({"body":{"a":{},"b":[1.5,"é"]},"method":"POST",)"
                                       R"("query":[["a","2"],["z","1"]],"route":"/v1/vms"})");
}

TEST(CanonicalRequest, IsItsOwnCanonicalForm) {
  RequestImage request = Request(R"({"text":"\"\\\n\u0001","deep":[[{"x":1e-7}]]})");
  request.query = {{"q\"", "\\"}};
  const std::string text = CanonicalRequest(request);
  const auto parsed = ParseStrictJson(text);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().detail;
  EXPECT_EQ(CanonicalJson(*parsed), text);
}

// --- Decide

constexpr Digest kPrint{1};
constexpr Digest kOtherPrint{2};

Operation Record(OperationState state, std::optional<Failure> failure = std::nullopt) {
  Operation operation;
  operation.fingerprint = kPrint;
  operation.state = state;
  operation.failure = std::move(failure);
  return operation;
}

Item FailedItem(int index, bool passing) {
  Item item;
  item.index = index;
  item.phase = ItemPhase::kFailed;
  item.failure = Failure{.code = "x", .detail = "", .passing = passing};
  return item;
}

const Failure kPassing{.code = "no_capacity", .detail = "", .passing = true};
const Failure kForGood{.code = "hypervisor_refused", .detail = "", .passing = false};

// Protocol section 6, row by row.
TEST(Decide, AnswersAsTheTableOfKnownKeysSays) {
  using enum OperationState;
  const std::vector<std::pair<Operation, KnownAnswer>> table = {
      {Record(kAccepted), KnownAnswer::kInProgress},
      {Record(kRunning), KnownAnswer::kInProgress},
      {Record(kVerifying), KnownAnswer::kInProgress},
      {Record(kSucceeded), KnownAnswer::kSucceeded},
      {Record(kFailed, kPassing), KnownAnswer::kNewAttempt},
      {Record(kFailed, kForGood), KnownAnswer::kFailedForGood},
      {Record(kCancelled), KnownAnswer::kCancelled},
  };
  for (const auto& [record, answer] : table) {
    EXPECT_EQ(Decide(record, kPrint), answer) << ToString(record.state);
    EXPECT_EQ(Decide(record, kOtherPrint), KnownAnswer::kMismatch) << ToString(record.state);
  }
}

TEST(Decide, AnswersATombstoneAsExpired) {
  Tombstone tombstone;
  tombstone.fingerprint = kPrint;
  EXPECT_EQ(Decide(tombstone, kPrint), KnownAnswer::kExpired);
  EXPECT_EQ(Decide(tombstone, kOtherPrint), KnownAnswer::kMismatch);
}

// A running attempt keeps the failure of the one before: it is no answer any more.
TEST(Decide, DoesNotLookAtAFailureBeforeTheEnd) {
  EXPECT_EQ(Decide(Record(OperationState::kRunning, kForGood), kPrint), KnownAnswer::kInProgress);
}

TEST(Decide, TriesABatchAgainWhenOneOfItsItemsMayPass) {
  Operation record = Record(OperationState::kFailed, kForGood);
  record.items = {FailedItem(0, false), FailedItem(1, true)};
  EXPECT_EQ(Decide(record, kPrint), KnownAnswer::kNewAttempt);
  record.items = {FailedItem(0, false), FailedItem(1, false)};
  EXPECT_EQ(Decide(record, kPrint), KnownAnswer::kFailedForGood);
  // An item that is done after it had failed once is nothing to try again.
  record.items = {FailedItem(0, false), FailedItem(1, true)};
  record.items[1].phase = ItemPhase::kDone;
  EXPECT_EQ(Decide(record, kPrint), KnownAnswer::kFailedForGood);
}

// Without a cause nothing says that it may pass, and a second effect is the worse mistake.
TEST(Decide, TakesAFailureWithoutACauseAsForGood) {
  EXPECT_EQ(Decide(Record(OperationState::kFailed), kPrint), KnownAnswer::kFailedForGood);
}

}  // namespace
}  // namespace vmonce::model
