#include "base/json_writer.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace vmonce {
namespace {

TEST(JsonWriter, SeparatesMembersAndElements) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Member("text", "a");
  json.Member("number", -7);
  json.Member("large", std::int64_t{1} << 53);
  json.Member("truth", true);
  json.Name("nothing");
  json.Null();
  json.Name("list");
  json.BeginArray();
  json.Value(std::string("x"));
  json.BeginObject();
  json.EndObject();
  json.BeginArray();
  json.EndArray();
  json.EndArray();
  json.Name("made");
  json.Raw(R"({"a":1})");
  json.Member("last", false);
  json.EndObject();
  EXPECT_EQ(out, R"({"text":"a","number":-7,"large":9007199254740992,"truth":true,"nothing":null,)"
                 R"("list":["x",{},[]],"made":{"a":1},"last":false})");
}

TEST(JsonWriter, EscapesWhatMustBeAndNothingElse) {
  std::string out;
  AppendJsonString(out, "a\"b\\c\b\t\n\f\r\x01\x1f/é\x7f");
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\b\\t\\n\\f\\r\\u0001\\u001f/é\x7f\"");
  out.clear();
  AppendJsonString(out, "");
  EXPECT_EQ(out, "\"\"");
  out.clear();
  AppendJsonString(out, "\n");
  EXPECT_EQ(out, "\"\\n\"");
}

TEST(JsonWriter, WritesStringsThatReadAsTheyWere) {
  std::string all;
  for (int c = 1; c < 0x80; ++c) all += static_cast<char>(c);
  std::string out;
  AppendJsonString(out, all);
  EXPECT_EQ(boost::json::parse(out), boost::json::value(all));
}

// Of every length and at every place, since several bytes are looked at at once.
TEST(JsonWriter, SeesWhatNeedsAnEscapeWhereverItStands) {
  for (std::size_t size = 1; size <= 20; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (int c = 0; c < 256; ++c) {
        std::string text(size, '~');
        text[at] = static_cast<char>(c);
        std::string out;
        AppendJsonString(out, text);
        const bool is_plain = c >= 0x20 && c != '"' && c != '\\';
        EXPECT_EQ(out == '"' + text + '"', is_plain) << size << " " << at << " " << c;
      }
    }
  }
}

TEST(JsonWriter, AppendsToWhatIsThere) {
  std::string out = "data: ";
  JsonWriter json(out);
  json.BeginArray();
  json.Value(1);
  json.Value(2);
  json.EndArray();
  EXPECT_EQ(out, "data: [1,2]");
}

}  // namespace
}  // namespace vmonce
