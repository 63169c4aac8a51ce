#include "app/completion.h"

#include <regex>

#include "app/fake_world.h"
#include "app/man_page.h"

namespace vmonce::app {
namespace {

// Every long flag and every command that the help of `command` shows.
std::set<std::string> WordsOfHelp(const std::string& help) {
  std::set<std::string> words;
  static const std::regex kFlag("--[a-z][a-z-]*");
  for (std::sregex_iterator at(help.begin(), help.end(), kFlag), end; at != end; ++at) {
    words.insert(at->str());
  }
  return words;
}

class Completion : public FakeWorld {};

TEST_F(Completion, AndManPagesSayAllThatTheHelpSays) {
  const CommandDoc root = DescribeCommandLine();
  const std::string bash = BashCompletion(root);
  const std::string zsh = ZshCompletion(root);
  const std::string fish = FishCompletion(root);
  const std::string page = ManPage(root, "");
  EXPECT_GE(AllCommands(root).size(), 20u);
  for (const CommandDoc* command : AllCommands(root)) {
    const std::string name = command->Joined(" ");
    std::vector<std::string> line = command->path;
    line.emplace_back("--help");
    ASSERT_EQ(Run(line), 0) << name;
    EXPECT_TRUE(bash.contains(fmt::format("    '{}')\n", name))) << name;
    EXPECT_TRUE(zsh.contains(fmt::format("    '{}')\n", name))) << name;
    EXPECT_TRUE(fish.contains(fmt::format("-a {} -d ", command->path.back()))) << name;
    std::string own = page;
    for (const CommandDoc& top : root.children) {
      if (top.path.back() == command->path.front()) own += CommandManPage(top);
    }
    for (const std::string& flag : WordsOfHelp(terminal_.out)) {
      std::string escaped;
      for (const char c : flag) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_TRUE(own.contains("\\fB" + escaped + "\\fR")) << name << " " << flag;
      EXPECT_TRUE(bash.contains(flag)) << name << " " << flag;
      EXPECT_TRUE(zsh.contains("'" + flag + ":")) << name << " " << flag;
      EXPECT_TRUE(fish.contains(" -l " + flag.substr(2))) << name << " " << flag;
    }
  }
}

TEST_F(Completion, WordsOfAFlagAreOffered) {
  const CommandDoc root = DescribeCommandLine();
  EXPECT_TRUE(BashCompletion(root).contains(
      "'create':--wait) _vmonce_words accepted started address ready; return ;;"));
  EXPECT_TRUE(BashCompletion(root).contains("_vmonce_words table json jsonl yaml name"));
  EXPECT_TRUE(BashCompletion(root).contains("'get')\n      if [[ $cur == -* ]]"));
}

TEST_F(Completion, IsPrintedForEachShellAndRefusedForOthers) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(Run({"completion", shell}), 0);
    EXPECT_TRUE(Printed(fmt::format("vmonce completion {}", shell)));
    EXPECT_EQ(terminal_.err, "");
  }
  EXPECT_EQ(Run({"completion", "csh"}), 2);
  EXPECT_TRUE(transport_.requests.empty());
}

TEST_F(Completion, ManPagesArePrintedAndWritten) {
  EXPECT_EQ(Run({"man"}), 0);
  EXPECT_TRUE(terminal_.out.starts_with(".TH VMONCE 1 "));
  EXPECT_EQ(Run({"man", "create"}), 0);
  EXPECT_TRUE(Printed("\\fB\\-\\-image\\fR \\fIIMAGE\\fR")) << terminal_.out;
  EXPECT_EQ(Run({"man", "nothing"}), 2);
  EXPECT_EQ(Run({"man", "--directory", home_.File("man")}), 0) << terminal_.err;
  for (const char* page : {"vmonce.1", "vmonce-create.1", "vmonce-operations.1"}) {
    EXPECT_TRUE(std::filesystem::exists(home_.File("man") + "/" + page)) << page;
  }
}

TEST(ManPage, EscapesWhatRoffWouldRead) {
  CommandDoc command;
  command.path = {"x"};
  command.text = ".dot\n'quote\nback\\slash --dash";
  const std::string page = CommandManPage(command);
  EXPECT_TRUE(page.contains("\\&.dot\n\\&'quote\nback\\eslash \\-\\-dash")) << page;
}

}  // namespace
}  // namespace vmonce::app
