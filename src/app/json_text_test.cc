#include "app/json_text.h"

#include <gtest/gtest.h>

#include "app/fake_world.h"

namespace vmonce::app {
namespace {

const boost::json::value kValue = boost::json::parse(
    R"({"name":"web","labels":{"a":"1","b":"no"},"list":["x y",2,{"k":null}],"empty":{},)"
    R"("at":"2026-01-01","text":"a: b\n"})");

TEST(Yaml, QuotesWhatCouldBeReadAsAnythingElse) {
  EXPECT_EQ(Yaml(kValue),
            "name: web\n"
            "labels:\n"
            "  a: \"1\"\n"
            "  b: \"no\"\n"
            "list:\n"
            "  - \"x y\"\n"
            "  - 2\n"
            "  -\n"
            "    k: null\n"
            "empty: {}\n"
            "at: \"2026-01-01\"\n"
            "text: \"a: b\\n\"\n");
}

TEST(PrettyJson, IsTheSameValueIndented) {
  const std::string text = PrettyJson(kValue);
  EXPECT_EQ(boost::json::parse(text), kValue);
  EXPECT_TRUE(text.starts_with("{\n  \"name\": \"web\",\n  \"labels\": {\n    \"a\": \"1\",\n"));
}

TEST(Cells, ReadForPeople) {
  EXPECT_EQ(CellAt(kValue, "labels"), "a=1,b=no");
  EXPECT_EQ(CellAt(kValue, "labels.a"), "1");
  EXPECT_EQ(CellAt(kValue, "list"), "x y,2,k=-");
  EXPECT_EQ(CellAt(kValue, "absent.member"), "-");
}

class Output : public testing::Test {
 protected:
  std::string Print(OutputFormat format) {
    FakeTerminal terminal;
    terminal.traits_now = traits_;
    PrintItems(terminal, format,
               {boost::json::parse(VmJson("ready")), boost::json::parse(VmJson("failed", "b"))},
               kVmColumns.first(2));
    return terminal.out;
  }
  TerminalTraits traits_;
};

TEST_F(Output, HasATableWithoutColourWhenPiped) {
  EXPECT_EQ(Print(OutputFormat::kTable), "NAME  STATE\nweb   ready\nb     failed\n");
}

TEST_F(Output, ColoursStatesOnATerminal) {
  traits_.out_has_colour = true;
  EXPECT_NE(Print(OutputFormat::kTable).find("\033[32mready\033[0m"), std::string::npos);
}

TEST_F(Output, HasNamesLinesAndDocuments) {
  EXPECT_EQ(Print(OutputFormat::kName), "web\nb\n");
  const std::string lines = Print(OutputFormat::kJsonLines);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 2);
  const auto document = boost::json::parse(Print(OutputFormat::kJson));
  EXPECT_EQ(document.at("items").as_array().size(), 2u);
  EXPECT_EQ(boost::json::parse(Print(OutputFormat::kJsonLine)), document);
  EXPECT_TRUE(Print(OutputFormat::kYaml).starts_with("items:\n  -\n    id: vm-1\n"));
}

TEST(TerminalTraits, FollowTheCustomsOfTheEnvironment) {
  const auto traits = [](std::map<std::string, std::string> variables, bool is_terminal) {
    return TraitsOf(true, is_terminal, is_terminal,
                    [&variables](const char* name) -> std::optional<std::string> {
                      const auto found = variables.find(name);
                      if (found == variables.end()) return std::nullopt;
                      return found->second;
                    });
  };
  EXPECT_TRUE(traits({{"TERM", "xterm"}}, true).out_has_colour);
  EXPECT_TRUE(traits({{"TERM", "xterm"}}, true).has_cursor);
  EXPECT_FALSE(traits({{"TERM", "xterm"}}, false).out_has_colour);
  EXPECT_FALSE(traits({{"TERM", "xterm"}, {"NO_COLOR", "1"}}, true).out_has_colour);
  EXPECT_TRUE(traits({{"TERM", "xterm"}, {"CLICOLOR_FORCE", "1"}}, false).out_has_colour);
  EXPECT_FALSE(traits({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}, true).out_has_colour);
  EXPECT_FALSE(traits({{"TERM", "dumb"}}, true).has_cursor);
  EXPECT_FALSE(traits({{"TERM", "dumb"}}, true).out_has_colour);
}

}  // namespace
}  // namespace vmonce::app
