#include "base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace vmonce {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json::object Parse(std::string_view text) { return ParseStrictJson(text)->as_object(); }

TEST(JsonReader, ReadsEveryKindOfMember) {
  const json::object body = Parse(
      R"({"name":"web","cpus":4.0,"wait":true,"power":"running","seed":{"a":1},
          "keys":["k1","k2"],"labels":{"team":"x"},"ports":[22]})");
  JsonReader reader(body, "");
  EXPECT_EQ(reader.String("name", {.max_bytes = 63}), "web");
  EXPECT_EQ(reader.Int("cpus", {1, 64}), 4);
  EXPECT_EQ(reader.Bool("wait"), true);
  EXPECT_EQ(reader.OneOf("power", {"running", "stopped"}), "running");
  ASSERT_NE(reader.Object("seed"), nullptr);
  EXPECT_EQ(reader.Object("seed")->at("a"), 1);
  EXPECT_EQ(reader.Strings("keys", {.max = 2}, {.max_bytes = 2}),
            (std::vector<std::string>{"k1", "k2"}));
  EXPECT_EQ(reader.StringMap("labels", {.max = 1}, {.max_bytes = 1}),
            (std::map<std::string, std::string>{{"team", "x"}}));
  ASSERT_NE(reader.Array("ports", {.min = 1, .max = 1}), nullptr);
  EXPECT_THAT(reader.Finish(), IsEmpty());
}

TEST(JsonReader, TakesAbsenceForNoProblemUnlessRequired) {
  const json::object body;
  JsonReader reader(body, "/spec");
  EXPECT_FALSE(reader.Has("image"));
  EXPECT_EQ(reader.String("image", {.max_bytes = 9}), std::nullopt);
  EXPECT_EQ(reader.Int("cpus", {1, 2}), std::nullopt);
  EXPECT_EQ(reader.Bool("wait"), std::nullopt);
  EXPECT_EQ(reader.OneOf("power", {"on"}), std::nullopt);
  EXPECT_EQ(reader.Object("o"), nullptr);
  EXPECT_EQ(reader.Array("a", {.max = 1}), nullptr);
  EXPECT_EQ(reader.Strings("s", {.max = 1}, {.max_bytes = 1}), std::nullopt);
  EXPECT_EQ(reader.StringMap("m", {.max = 1}, {.max_bytes = 1}), std::nullopt);
  reader.Require({"image", "cpus"});
  EXPECT_THAT(reader.Finish(), ElementsAre(FieldProblem{"/spec/image", "image is required"},
                                           FieldProblem{"/spec/cpus", "cpus is required"}));
}

TEST(JsonReader, SaysInASentenceWhatEachMemberMustBe) {
  const json::object body =
      Parse(R"({"name":"","text":5,"cpus":65,"ram":1.5,"wait":"yes","power":"off","o":[],"a":{},
                "few":[],"many":[1,2,3],"map":[]})");
  JsonReader reader(body, "");
  EXPECT_FALSE(reader.String("name", {.max_bytes = 63}));
  EXPECT_FALSE(reader.String("text", {.min_bytes = 0, .max_bytes = 9}));
  EXPECT_FALSE(reader.Int("cpus", {1, 64}));
  EXPECT_FALSE(reader.Int("ram", {1, 64}));
  EXPECT_FALSE(reader.Bool("wait"));
  EXPECT_FALSE(reader.OneOf("power", {"running", "stopped"}));
  EXPECT_FALSE(reader.Object("o"));
  EXPECT_FALSE(reader.Array("a", {.max = 2}));
  EXPECT_FALSE(reader.Array("few", {.min = 1, .max = 2}));
  EXPECT_FALSE(reader.Array("many", {.min = 1, .max = 2}));
  EXPECT_FALSE(reader.StringMap("map", {.max = 2}, {.max_bytes = 2}));
  EXPECT_THAT(reader.Finish(),
              ElementsAre(FieldProblem{"/name", "name must be a string of 1 to 63 bytes"},
                          FieldProblem{"/text", "text must be a string of at most 9 bytes"},
                          FieldProblem{"/cpus", "cpus must be a whole number from 1 to 64"},
                          FieldProblem{"/ram", "ram must be a whole number from 1 to 64"},
                          FieldProblem{"/wait", "wait must be true or false"},
                          FieldProblem{"/power", "power must be one of running, stopped"},
                          FieldProblem{"/o", "o must be an object"},
                          FieldProblem{"/a", "a must be an array of at most 2 elements"},
                          FieldProblem{"/few", "few must be an array of 1 to 2 elements"},
                          FieldProblem{"/many", "many must be an array of 1 to 2 elements"},
                          FieldProblem{"/map", "map must be an object of at most 2 strings"}));
}

TEST(JsonReader, PointsAtTheWrongElement) {
  const json::object body = Parse(R"({"keys":["ok",7,""],"labels":{"good":"x","a/b":1}})");
  JsonReader reader(body, "/spec");
  EXPECT_FALSE(reader.Strings("keys", {.max = 5}, {.max_bytes = 5}));
  EXPECT_FALSE(reader.StringMap("labels", {.max = 5}, {.max_bytes = 5}));
  EXPECT_THAT(
      reader.Finish(),
      ElementsAre(
          FieldProblem{"/spec/keys/1", "element 1 of keys must be a string of 1 to 5 bytes"},
          FieldProblem{"/spec/keys/2", "element 2 of keys must be a string of 1 to 5 bytes"},
          FieldProblem{"/spec/labels/a~1b", "\"a/b\" in labels must be a string of 1 to 5 bytes"}));
}

TEST(JsonReader, TakesBothEndsOfARange) {
  const json::object body = Parse(R"({"a":1,"b":64,"c":0,"d":65,"e":-5})");
  JsonReader reader(body, "");
  EXPECT_EQ(reader.Int("a", {1, 64}), 1);
  EXPECT_EQ(reader.Int("b", {1, 64}), 64);
  EXPECT_EQ(reader.Int("c", {1, 64}), std::nullopt);
  EXPECT_EQ(reader.Int("d", {1, 64}), std::nullopt);
  EXPECT_EQ(reader.Int("e", {-5, 5}), -5);
}

TEST(JsonReader, ReadsWholeNumbersOfEveryKindAlike) {
  json::object body;
  body["double"] = 3.0;
  body["unsigned"] = std::uint64_t{3};
  body["huge"] = UINT64_MAX;
  body["far"] = 1e300;
  JsonReader reader(body, "");
  EXPECT_EQ(reader.Int("double", {0, INT64_MAX}), 3);
  EXPECT_EQ(reader.Int("unsigned", {0, INT64_MAX}), 3);
  EXPECT_EQ(reader.Int("huge", {0, INT64_MAX}), std::nullopt);
  EXPECT_EQ(reader.Int("far", {0, INT64_MAX}), std::nullopt);
}

TEST(JsonReader, TakesNullForAProblemUnlessAskedForIt) {
  const json::object body = Parse(R"({"name":null,"label":null})");
  JsonReader reader(body, "");
  EXPECT_TRUE(reader.IsNull("name"));
  EXPECT_FALSE(reader.IsNull("other"));
  EXPECT_FALSE(reader.String("label", {.max_bytes = 5}));
  EXPECT_THAT(reader.Finish(),
              ElementsAre(FieldProblem{"/label", "label must be a string of 1 to 5 bytes"}));
}

TEST(JsonReader, RefusesUnknownMembersAndSuggestsTheNearestName) {
  const json::object body = Parse(
      R"({"cpu":1,"memroy_mib":1,"user_date":"","zebra":1,"Name":"x","nmae":1,"a":1,"name":"x"})");
  JsonReader reader(body, "");
  EXPECT_TRUE(reader.String("name", {.max_bytes = 9}));
  EXPECT_FALSE(reader.Int("cpus", {1, 2}));
  EXPECT_FALSE(reader.Int("memory_mib", {1, 2}));
  EXPECT_FALSE(reader.String("user_data", {.max_bytes = 9}));
  EXPECT_THAT(
      reader.Finish(),
      ElementsAre(
          FieldProblem{"/cpu", "\"cpu\" is not known here; did you mean cpus?"},
          FieldProblem{"/memroy_mib", "\"memroy_mib\" is not known here; did you mean memory_mib?"},
          FieldProblem{"/user_date", "\"user_date\" is not known here; did you mean user_data?"},
          FieldProblem{"/zebra", "\"zebra\" is not known here"},
          FieldProblem{"/Name", "\"Name\" is not known here; did you mean name?"},
          FieldProblem{"/nmae", "\"nmae\" is not known here; did you mean name?"},
          FieldProblem{"/a", "\"a\" is not known here"}));
}

TEST(JsonReader, ShowsHostileNamesQuotedAndCut) {
  json::object body;
  body["x\ny"] = 1;
  body[std::string(5000, 'z')] = 1;
  body["caf\xc3\xa9"] = 1;
  const std::string almost_too_long(63, 'y');
  body[almost_too_long + "\xf0\x9f\x98\x80"] = 1;
  JsonReader reader(body, "");
  EXPECT_FALSE(reader.Bool("wait"));
  const auto problems = reader.Finish();
  ASSERT_EQ(problems.size(), 4u);
  EXPECT_THAT(problems[0].detail, HasSubstr("\"x\\ny\""));
  EXPECT_LT(problems[1].detail.size(), 200u);
  EXPECT_THAT(problems[2].detail, HasSubstr("caf\xc3\xa9"));
  EXPECT_THAT(problems[3].detail, HasSubstr(almost_too_long + "\" is"));
}

TEST(JsonReader, GathersWhatInnerReadersAndCallersFind) {
  const json::object body = Parse(R"({"forward":[{"guest_port":0,"x":1}],"name":"a-"})");
  JsonReader reader(body, "");
  reader.AddProblem("name", "must not end with a hyphen");
  const json::array* forward = reader.Array("forward", {.max = 4});
  ASSERT_NE(forward, nullptr);
  JsonReader inner(forward->at(0).as_object(), reader.Pointer("forward", 0));
  EXPECT_FALSE(inner.Int("guest_port", {1, 65535}));
  reader.Add(inner.Finish());
  EXPECT_TRUE(reader.String("name", {.max_bytes = 9}));
  EXPECT_THAT(reader.Finish(),
              ElementsAre(FieldProblem{"/name", "name must not end with a hyphen"},
                          FieldProblem{"/forward/0/guest_port",
                                       "guest_port must be a whole number from 1 to 65535"},
                          FieldProblem{"/forward/0/x", "\"x\" is not known here"}));
}

}  // namespace
}  // namespace vmonce
