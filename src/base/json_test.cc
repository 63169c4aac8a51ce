#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/system.h"

namespace vmonce {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Canonical(std::string_view text) {
  const auto value = ParseStrictJson(text);
  EXPECT_TRUE(value) << text << ": " << value.error().detail;
  return value ? CanonicalJson(*value) : "";
}

Error Refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto value = ParseStrictJson(text, limits);
  EXPECT_FALSE(value) << text;
  return value ? Error{ErrorCode::kInternal, ""} : value.error();
}

TEST(StrictJson, RefusesMalformedText) {
  using std::string_view_literals::operator""sv;
  for (std::string_view text : {
           ""sv,
           " "sv,
           "{"sv,
           "}"sv,
           "[1,]"sv,
           "[,1]"sv,
           "{\"a\":1,}"sv,
           "{\"a\"}"sv,
           "{a:1}"sv,
           "{'a':1}"sv,
           "nul"sv,
           "True"sv,
           "NaN"sv,
           "Infinity"sv,
           "-"sv,
           "+1"sv,
           "01"sv,
           "1."sv,
           ".5"sv,
           "1e"sv,
           "1e+"sv,
           "-01"sv,
           "0x10"sv,
           "\"a"sv,
           "\"\\x\""sv,
           "\"\\u12\""sv,
           "\"\n\""sv,
           "\"\t\""sv,
           "\"\0\""sv,
           "[1 2]"sv,
           "{\"a\" 1}"sv,
           "// no\n1"sv,
           "/**/1"sv,
           "\xef\xbb\xbf{}"sv,
           "1 1"sv,
           "{} x"sv,
           "{}\0"sv,
           "\"\\ud800\""sv,
           "\"\\udc00\""sv,
           "\"\\ud800\\u0041\""sv,
           "\"\\ud800x\""sv,
           "[1}"sv,
           "{\"a\":1]"sv,
       }) {
    EXPECT_EQ(Refusal(text).code, ErrorCode::kInvalid) << text;
  }
}

TEST(StrictJson, RefusesInvalidUtf8InStringsAndNames) {
  for (const char* bytes :
       {"\x80", "\xff", "\xc0\xaf", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80", "\xc3\x28", "\xe0\x80\xaf"}) {
    EXPECT_EQ(Refusal(std::string("\"a") + bytes + "\"").code, ErrorCode::kInvalid);
    EXPECT_EQ(Refusal(std::string("{\"") + bytes + "\":1}").code, ErrorCode::kInvalid);
  }
}

TEST(StrictJson, RefusesAMemberNameTwice) {
  for (const char* text : {R"({"a":1,"a":1})", R"({"a":1,"b":2,"a":3})", R"({"a":1,"\u0061":2})",
                           R"([{"x":{"y":1,"y":2}}])", R"({"":1,"":2})"}) {
    EXPECT_THAT(Refusal(text).detail, HasSubstr("stands twice")) << text;
  }
  EXPECT_EQ(Canonical(R"({"a":{"a":1},"b":{"a":1}})"), R"({"a":{"a":1},"b":{"a":1}})");
}

TEST(StrictJson, RefusesNulInStringsAndNames) {
  EXPECT_THAT(Refusal(R"("a\u0000b")").detail, HasSubstr("U+0000"));
  EXPECT_THAT(Refusal(R"({"\u0000":1})").detail, HasSubstr("U+0000"));
  EXPECT_EQ(Canonical(R"("\\u0000")"), R"("\\u0000")");
}

TEST(StrictJson, RefusesWholeNumbersBeyondTwoToThe53) {
  for (const char* text :
       {"9007199254740993", "-9007199254740993", "9223372036854775808", "18446744073709551615",
        "18446744073709551616", "-9223372036854775809", "100000000000000000000000000000",
        "9007199254740993.0", "9.007199254740993e15", "1e16", "1e20", "1e300", "-1e300"}) {
    EXPECT_THAT(Refusal(text).detail, HasSubstr("2^53")) << text;
  }
  EXPECT_EQ(Canonical("9007199254740992"), "9007199254740992");
  EXPECT_EQ(Canonical("-9007199254740992"), "-9007199254740992");
  EXPECT_EQ(Canonical("9007199254740991.0"), "9007199254740991");
}

TEST(StrictJson, RefusesNumbersThatAreNotFinite) {
  for (const char* text : {"1e309", "-1e309", "1e400", "1e999999999", "1e99999999999999999999"}) {
    EXPECT_EQ(Refusal(text).code, ErrorCode::kInvalid) << text;
  }
  EXPECT_EQ(Canonical("1e-400"), "0");
}

TEST(StrictJson, ReadsOneValueInAllItsSpellings) {
  const std::vector<const char*> spellings = {"1", "1.0", "1.000", "1e0", "10e-1", "0.1e1", "1E+0"};
  for (const char* text : spellings) {
    EXPECT_EQ(*ParseStrictJson(text), json::value(std::int64_t{1})) << text;
  }
  for (const char* text : {"0", "-0", "0.0", "-0.0", "-0e5", "0e-5"}) {
    EXPECT_EQ(*ParseStrictJson(text), json::value(std::int64_t{0})) << text;
  }
}

TEST(StrictJson, LimitsDepth) {
  const JsonLimits limits{.max_depth = 3};
  EXPECT_TRUE(ParseStrictJson("[[[1]]]", limits));
  EXPECT_TRUE(ParseStrictJson(R"({"a":[{"b":1}]})", limits));
  EXPECT_THAT(Refusal("[[[[1]]]]", limits).detail, HasSubstr("deeper than 3"));
  EXPECT_THAT(Refusal(R"({"a":{"a":{"a":{}}}})", limits).detail, HasSubstr("deeper than 3"));
  EXPECT_EQ(Refusal(std::string(100000, '[')).code, ErrorCode::kInvalid);
}

TEST(StrictJson, TellsWhereTheTroubleIs) {
  EXPECT_THAT(Refusal(R"({"a":1,"a":2})").detail, HasSubstr("at byte 9:"));
  EXPECT_THAT(Refusal("[1,2,x]").detail, HasSubstr("at byte 5:"));
  EXPECT_THAT(Refusal("{}  x").detail, HasSubstr("at byte 4: more follows"));
  EXPECT_THAT(Refusal("[1,2").detail, HasSubstr("at byte 4:"));
  const std::string padding(5000, ' ');
  EXPECT_THAT(Refusal("[" + padding + "x]").detail, HasSubstr("at byte 5001:"));
  EXPECT_THAT(Refusal("[\"" + std::string(2046, 'y') + "\",\"\\u0000\"]").detail,
              HasSubstr("at byte 2057: a string holds U+0000"));
}

// The numbers of RFC 8785 appendix B, as IEEE 754 bits.
TEST(CanonicalJson, WritesNumbersAsRfc8785Demands) {
  const std::pair<std::uint64_t, const char*> vectors[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const auto& [bits, text] : vectors) {
    EXPECT_EQ(CanonicalJson(json::value(std::bit_cast<double>(bits))), text);
  }
}

TEST(CanonicalJson, ReadsNumbersToTheNearestDouble) {
  const std::pair<const char*, const char*> vectors[] = {
      {"333333333.33333329", "333333333.3333333"},
      {"4.50", "4.5"},
      {"2e-3", "0.002"},
      {"0.000000000000000000000000001", "1e-27"},
      {"0.1000000000000000055511151231257827", "0.1"},
      {"2.2250738585072011e-308", "2.225073858507201e-308"},
      {"5e-324", "5e-324"},
      {"1.7976931348623157e-300", "1.7976931348623157e-300"},
      {"1424953923781206.2", "1424953923781206.2"},
  };
  for (const auto& [text, canonical] : vectors) EXPECT_EQ(Canonical(text), canonical) << text;
}

TEST(CanonicalJson, SortsMembersByUtf16CodeUnits) {
  // U+1F600 is a surrogate pair from D83D on, so it comes before U+FB33, which its UTF-8 bytes
  // follow.
  EXPECT_EQ(
      Canonical(R"({"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7})"),
      "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"\xc3\xb6\":7,\"\xe2\x82\xac\":1,"
      "\"\xf0\x9f\x98\x80\":5,\"\xef\xac\xb3\":3}");
  EXPECT_EQ(Canonical(R"({"b":1,"":2,"aa":3,"a":4,"\ue000":5,"\ud7ff":6,"\ud800\udc00":7})"),
            "{\"\":2,\"a\":4,\"aa\":3,\"b\":1,\"\xed\x9f\xbf\":6,\"\xf0\x90\x80\x80\":7,"
            "\"\xee\x80\x80\":5}");
}

TEST(CanonicalJson, EscapesOnlyWhatItMust) {
  EXPECT_EQ(Canonical(R"("\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/")"),
            "\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"");
  EXPECT_EQ(Canonical(R"("\b\t\n\f\r\u001f\u007f\u2028")"),
            "\"\\b\\t\\n\\f\\r\\u001f\x7f\xe2\x80\xa8\"");
}

// report 74
TEST(CanonicalJson, IsTheSameForOrderSpaceNumberFormAndEscapes) {
  const std::string expected = R"({"a":[1,true,null,{"x":"y"}],"b":"\n"})";
  for (const char* text :
       {R"({"a":[1,true,null,{"x":"y"}],"b":"\n"})",
        R"( { "b" : "\u000a" , "a" : [ 1.0 , true , null , { "\u0078" : "\u0079" } ] } )",
        "{\"b\":\"\\n\",\n\t\"a\":[10e-1,true,null,{\"x\":\"y\"}]}\r\n"}) {
    EXPECT_EQ(Canonical(text), expected);
  }
  EXPECT_NE(Canonical("[1,2]"), Canonical("[2,1]"));
}

// Random values, made of what the strict form accepts.
class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {}

  json::value Value(int depth) {
    switch (random_.Below(depth > 0 ? 8 : 5)) {
      case 0: return nullptr;
      case 1: return random_.Below(2) == 0;
      case 2: return static_cast<std::int64_t>(random_.Below(1ull << 54)) - (1ll << 53);
      case 3: return Double();
      case 4: return json::string(Text());
      case 5:
      case 6: {
        json::object object;
        for (std::uint64_t i = random_.Below(30); i > 0; --i) object[Text()] = Value(depth - 1);
        return object;
      }
      default: {
        json::array array;
        for (std::uint64_t i = random_.Below(5); i > 0; --i) array.push_back(Value(depth - 1));
        return array;
      }
    }
  }

 private:
  double Double() {
    while (true) {
      const auto number = std::bit_cast<double>(random_.Next());
      if (std::isfinite(number) && std::abs(number) < 9007199254740992.0) return number;
    }
  }
  std::string Text() {
    static constexpr const char* kPieces[] = {
        "a",    "\"",       "\\",           "\n",           "\x01",
        "\x7f", "\xc3\xb6", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x9f\x98\x80",
        "/",    "~",        "\xe2\x80\xa8"};
    std::string text;
    for (std::uint64_t i = random_.Below(6); i > 0; --i)
      text += kPieces[random_.Below(std::size(kPieces))];
    return text;
  }

  Random& random_;
};

TEST(CanonicalJson, ReadsBackAsTheSameValueAndTheSameText) {
  const auto random = NewSystemRandom();
  Maker maker(*random);
  for (int i = 0; i < 200; ++i) {
    const json::value value = maker.Value(3);
    const std::string canonical = CanonicalJson(value);
    const auto again = ParseStrictJson(canonical);
    ASSERT_TRUE(again) << canonical << again.error().detail;
    EXPECT_EQ(CanonicalJson(*again), canonical);
    EXPECT_THAT(DifferingPointers(value, *again, 10), IsEmpty()) << canonical;
    // Another spelling of the same value, by another writer.
    const auto spelled = ParseStrictJson(json::serialize(value));
    ASSERT_TRUE(spelled);
    EXPECT_EQ(CanonicalJson(*spelled), canonical);
  }
}

std::vector<std::string> Differences(std::string_view a, std::string_view b,
                                     std::size_t most = 10) {
  return DifferingPointers(*ParseStrictJson(a), *ParseStrictJson(b), most);
}

TEST(DifferingPointers, NamesTheDeepestPlacesInDocumentOrder) {
  EXPECT_THAT(
      Differences(R"({"z":1,"a":{"b":[1,2,3]},"same":0})", R"({"a":{"b":[1,5,3]},"same":0,"z":2})"),
      ElementsAre("/z", "/a/b/1"));
}

TEST(DifferingPointers, NamesMembersAndElementsOfOneSideOnly) {
  EXPECT_THAT(Differences(R"({"a":1,"b":{"c":1}})", R"({"d":1,"a":1})"), ElementsAre("/b", "/d"));
  EXPECT_THAT(Differences("[1]", "[1,2,{}]"), ElementsAre("/1", "/2"));
  EXPECT_THAT(Differences("[1,2]", "[]"), ElementsAre("/0", "/1"));
}

TEST(DifferingPointers, NamesTheWholeWhenKindsDiffer) {
  EXPECT_THAT(Differences("{}", "[]"), ElementsAre(""));
  EXPECT_THAT(Differences("1", "\"1\""), ElementsAre(""));
  EXPECT_THAT(Differences(R"({"a":{}})", R"({"a":null})"), ElementsAre("/a"));
  EXPECT_THAT(Differences(R"({"a":0})", R"({"a":false})"), ElementsAre("/a"));
}

TEST(DifferingPointers, EscapesTokens) {
  EXPECT_THAT(Differences(R"({"a/b":1,"m~n":1,"":1})", R"({"a/b":2,"m~n":2,"":2})"),
              ElementsAre("/a~1b", "/m~0n", "/"));
}

TEST(DifferingPointers, StopsAtTheMost) {
  EXPECT_THAT(Differences("[1,2,3,4]", "[5,6,7,8]", 2), ElementsAre("/0", "/1"));
  EXPECT_THAT(Differences(R"({"a":1})", R"({"b":1})", 1), ElementsAre("/a"));
  EXPECT_THAT(Differences("1", "2", 0), IsEmpty());
}

TEST(DifferingPointers, TreatsEqualNumbersOfDifferentKindsAsEqual) {
  EXPECT_THAT(DifferingPointers(json::value(1.0), json::value(std::int64_t{1}), 5), IsEmpty());
  EXPECT_THAT(DifferingPointers(json::value(std::uint64_t{1}), json::value(std::int64_t{1}), 5),
              IsEmpty());
  EXPECT_THAT(DifferingPointers(json::value(-0.0), json::value(0.0), 5), IsEmpty());
  EXPECT_THAT(DifferingPointers(json::value(1.5), json::value(std::int64_t{1}), 5),
              ElementsAre(""));
}

}  // namespace
}  // namespace vmonce
