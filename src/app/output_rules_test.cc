// What holds for every command, present and to come: exit codes, which stream says what, formats.
#include <sstream>

#include "app/fake_world.h"
#include "app/json_text.h"
#include "base/json.h"

namespace vmonce::app {
namespace {

using client::FakeTransport;

constexpr const char* kId = "01a22e32-d4b9-752d-a0a8-dca2014a5837";
const std::vector<std::string> kFormats = {"table", "json", "jsonl", "yaml", "name"};

bool IsIn(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

class OutputRules : public FakeWorld {
 protected:
  // Runs in this process nothing that would serve; those that ask no server.
  const std::vector<std::string> kLocal = {"serve",       "version",      "man",
                                           "config show", "config check", "doctor",
                                           "completion",  "rebuild",      "sim"};

  // A command line for any command: arguments by their kind, flags that it insists on.
  static std::vector<std::string> LineOf(const CommandDoc& command) {
    std::vector<std::string> line = command.path;
    for (const ArgumentDoc& argument : command.arguments) {
      if (argument.is_required) line.emplace_back(kId);
    }
    for (const FlagDoc& flag : command.flags) {
      if (IsIn(flag.names, "--yes")) line.emplace_back("--yes");
      // Whatever is made from an image must say of which.
      if (IsIn(flag.names, "--image") || flag.is_required) {
        line.push_back(flag.names.back());
        const auto words = flag.Words();
        line.push_back(words.empty() ? "1" : words.front());
      }
    }
    line.insert(line.end(), {"--timeout", "2s"});
    return line;
  }

  // Every command that asks a server, with every answer being `answer`.
  void ForEach(const Answer& answer, const std::function<void(const std::string& name)>& check) {
    transport_.handler = [&answer](const client::HttpRequest&) { return answer; };
    const CommandDoc root = DescribeCommandLine();
    int tried = 0;
    for (const CommandDoc* command : AllCommands(root)) {
      const std::string name = command->Joined(" ");
      const bool is_group = !command->children.empty() && command->arguments.empty();
      if (IsIn(kLocal, name) || is_group) continue;
      SCOPED_TRACE(name);
      transport_.requests.clear();
      code_ = Run(LineOf(*command));
      if (IsUnasked()) continue;
      check(name);
      ++tried;
    }
    EXPECT_GE(tried, 15);
  }

  // It wants more than this test can guess (a file that is there), and says so before it asks.
  bool IsUnasked() {
    if (code_ != 2 || !transport_.requests.empty()) return false;
    EXPECT_TRUE(Said("error: ")) << terminal_.err;
    EXPECT_EQ(terminal_.out, "");
    return true;
  }

  int code_ = 0;
};

TEST_F(OutputRules, AnUnreachableServerIsThreeWithARepairAndNoData) {
  ForEach(FakeTransport::Refused(), [this](const std::string&) {
    EXPECT_EQ(code_, 3) << terminal_.err;
    EXPECT_EQ(terminal_.out, "");
    EXPECT_TRUE(Said("error: ") && Said("repair: ")) << terminal_.err;
  });
}

TEST_F(OutputRules, EveryRefusalHasItsExitCodeTheApisCodeAndNoData) {
  struct Row {
    int status;
    const char* code;
    int exit;
  };
  for (const Row& row :
       {Row{401, "unauthenticated", 7}, Row{403, "forbidden", 7}, Row{404, "vm_not_found", 6},
        Row{409, "conflict", 1}, Row{422, "idempotency_key_reused", 5}, Row{500, "internal", 1}}) {
    SCOPED_TRACE(row.code);
    ForEach(FakeTransport::Json(
                row.status,
                fmt::format(R"({{"code":"{}","detail":"why","retryable":false}})", row.code)),
            [&](const std::string&) {
              EXPECT_EQ(code_, row.exit) << terminal_.err;
              EXPECT_EQ(terminal_.out, "");
              EXPECT_TRUE(Said(fmt::format("code: {} (HTTP {})", row.code, row.status)))
                  << terminal_.err;
            });
  }
}

TEST_F(OutputRules, CtrlCIsAHundredAndThirtyWithNoData) {
  transport_.handler = [this](const client::HttpRequest&) -> Answer {
    stop_.request_stop();
    return FakeTransport::Lost();
  };
  const CommandDoc root = DescribeCommandLine();
  for (const CommandDoc* command : AllCommands(root)) {
    const bool is_group = !command->children.empty() && command->arguments.empty();
    if (IsIn(kLocal, command->Joined(" ")) || is_group) continue;
    SCOPED_TRACE(command->Joined(" "));
    transport_.requests.clear();
    code_ = Run(LineOf(*command));
    if (IsUnasked()) continue;
    EXPECT_EQ(code_, 130) << terminal_.err;
    EXPECT_EQ(terminal_.out, "");
    EXPECT_TRUE(Said("interrupted")) << terminal_.err;
  }
}

TEST_F(OutputRules, AnUnknownFlagOrFormatIsTwoAndNothingIsSent) {
  const CommandDoc root = DescribeCommandLine();
  for (const CommandDoc* command : AllCommands(root)) {
    if (IsIn({"serve", "sim"}, command->path.front())) continue;
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--no-such-flag"}, {"-o", "xml"}, {"--timeout", "soon"}}) {
      std::vector<std::string> line = LineOf(*command);
      line.insert(line.end(), more.begin(), more.end());
      EXPECT_EQ(Run(line), 2) << command->Joined(" ") << " " << more.front();
      EXPECT_EQ(terminal_.out, "");
      EXPECT_TRUE(Said("error: ")) << terminal_.err;
    }
  }
  EXPECT_TRUE(transport_.requests.empty());
}

struct Success {
  std::vector<std::string> line;
  std::vector<std::string> names;  // What -o name prints.
};

class Formats : public FakeWorld {
 protected:
  Formats() {
    const std::string operation =
        R"({"id":"op-1","kind":"create","state":"succeeded","items":[],"vms":[]})";
    ExpectJson("GET /v1/vms?limit=100", 200,
               fmt::format(R"({{"items":[{},{}],"next":null}})", VmJson("ready", "a", "vm-1"),
                           VmJson("failed", "b", "vm-2")));
    ExpectJson(fmt::format("GET /v1/vms/{}", kId), 200, VmJson("ready", "web", kId));
    ExpectJson("GET /v1/images", 200,
               R"({"items":[{"name":"tiny","kind":"kernel","aliases":["small"]}]})");
    ExpectJson("GET /v1/hosts", 200, R"({"items":[{"id":"local","state":"active"}]})");
    ExpectJson("GET /v1/operations?limit=100", 200, fmt::format(R"({{"items":[{}]}})", operation));
    ExpectJson("GET /v1/operations/op-1", 200, operation);
    ExpectJson("GET /v1/operations?idempotency_key=k&limit=100", 200,
               R"({"items":[{"id":"op-1","kind":"create","state":"succeeded","vms":["vm-1"]}]})");
    ExpectJson("GET /v1/operations/op-1/timeline", 200,
               R"({"items":[{"at":"2026-11-30T20:00:00.000Z","event":"accepted","detail":"x"}]})");
    ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready", "web", "vm-1"));
    ExpectJson(fmt::format("GET /v1/operations/{}", kId), 404, R"({"code":"operation_not_found"})");
    ExpectJson(fmt::format("GET /v1/operations?vm={}&limit=100", kId), 200, R"({"items":[]})");
    ExpectJson("POST /v1/vms", 200,
               CreatedJson(OperationJson("succeeded", "done", "publish"), VmJson("ready")));
    ExpectJson("POST /v1/reconcile", 200, R"({"hosts":[{"host":"local","domains":1}]})");
    ExpectJson("GET /readyz", 200, R"({"status":"ready"})");
  }

  const std::vector<Success> kRows = {
      {{"list"}, {"a", "b"}},
      {{"get", kId}, {"web"}},
      {{"images"}, {"tiny"}},
      {{"hosts"}, {"local"}},
      {{"operations"}, {"op-1"}},
      {{"operations", "list"}, {"op-1"}},
      {{"operations", "get", "op-1"}, {"op-1"}},
      {{"explain", "k"}, {"web"}},
      {{"wait", kId}, {"web"}},
      {{"wait", kId, "--for", "ready"}, {"web"}},
      {{"create", "--image", "tiny"}, {"web"}},
      {{"reconcile"}, {"local"}},
      {{"doctor"}, {}},
      {{"config", "show"}, {}},
  };

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::istringstream text(terminal_.out);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(Formats, DataIsOnStdoutInTheFormatAskedFor) {
  for (const Success& row : kRows) {
    for (const std::string& format : kFormats) {
      SCOPED_TRACE(fmt::format("{} -o {}", fmt::join(row.line, " "), format));
      std::vector<std::string> line = row.line;
      line.insert(line.end(), {"-o", format});
      // What doctor finds is this computer's.
      const int worst = row.line.front() == "doctor" ? 1 : 0;
      EXPECT_LE(Run(line), worst) << terminal_.err;
      EXPECT_FALSE(terminal_.out.empty());
      EXPECT_TRUE(terminal_.out.ends_with('\n'));
      EXPECT_EQ(terminal_.out.find('\033'), std::string::npos);
      if (format == "json") {
        EXPECT_TRUE(ParseStrictJson(terminal_.out)) << terminal_.out;
      }
      if (format == "jsonl") {
        for (const std::string& item : Lines()) EXPECT_TRUE(ParseStrictJson(item)) << item;
      }
      if (format == "name" && !row.names.empty()) {
        EXPECT_EQ(Lines(), row.names);
      }
    }
  }
}

TEST_F(Formats, JsonIsTheApisOwnAndOneLineOnDemand) {
  EXPECT_EQ(Run({"images", "--json"}), 0);
  EXPECT_EQ(terminal_.out,
            "{\"items\":[{\"name\":\"tiny\",\"kind\":\"kernel\",\"aliases\":[\"small\"]}]}\n");
}

TEST_F(Formats, TablesAreNeverCutAndColouredOnTerminalsOnly) {
  const std::string name(300, 'n');
  ExpectJson("GET /v1/vms?limit=100", 200,
             fmt::format(R"({{"items":[{}],"next":null}})", VmJson("ready", name)));
  EXPECT_EQ(Run({"list"}), 0);
  EXPECT_TRUE(Printed(name));
  EXPECT_FALSE(Printed("\033["));
  terminal_.traits_now.out_has_colour = true;
  EXPECT_EQ(Run({"list"}), 0);
  EXPECT_TRUE(Printed("\033[32mready\033[0m"));
  for (const char* format : {"json", "jsonl", "yaml", "name"}) {
    EXPECT_EQ(Run({"list", "-o", format}), 0);
    EXPECT_FALSE(Printed("\033[")) << format;
  }
}

TEST(TerminalTraits, ColourFollowsTheAgreedVariables) {
  const auto colour = [](bool out, std::map<std::string, std::string> set) {
    set.try_emplace("TERM", "xterm");
    const Environ environment = [&set](const char* name) -> std::optional<std::string> {
      const auto found = set.find(name);
      return found == set.end() ? std::nullopt : std::optional(found->second);
    };
    return TraitsOf(true, out, out, environment);
  };
  EXPECT_TRUE(colour(true, {}).out_has_colour);
  EXPECT_FALSE(colour(false, {}).out_has_colour);
  EXPECT_FALSE(colour(true, {{"NO_COLOR", "1"}}).out_has_colour);
  EXPECT_TRUE(colour(false, {{"CLICOLOR_FORCE", "1"}}).out_has_colour);
  EXPECT_FALSE(colour(false, {{"CLICOLOR_FORCE", "0"}}).out_has_colour);
  EXPECT_FALSE(colour(true, {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}).out_has_colour);
  EXPECT_FALSE(colour(true, {{"TERM", "dumb"}}).out_has_colour);
  EXPECT_FALSE(colour(true, {{"TERM", "dumb"}}).has_cursor);
  EXPECT_TRUE(colour(true, {}).has_cursor);
}

class Help : public FakeWorld {};

TEST_F(Help, EveryWayOfAskingForItWorks) {
  EXPECT_EQ(Run({"--help"}), 0);
  const std::string help = terminal_.out;
  EXPECT_EQ(Run({"help"}), 0);
  EXPECT_EQ(terminal_.out, help);
  EXPECT_EQ(Run({"create", "--help"}), 0);
  const std::string create = terminal_.out;
  EXPECT_EQ(Run({"help", "create"}), 0);
  EXPECT_EQ(terminal_.out, create);
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_TRUE(terminal_.out.starts_with("vmonce ")) << terminal_.out;
  EXPECT_EQ(Run({}), 2);
  EXPECT_TRUE(Said("Subcommands:")) << terminal_.err;
  EXPECT_EQ(terminal_.out, "");
}

TEST_F(Help, AWordOfOtherProgramsOrASlipIsAnsweredWithOurs) {
  for (const auto& [word, ours] : {std::pair{"ls", "list"},
                                   {"ps", "list"},
                                   {"rm", "delete"},
                                   {"launch", "create"},
                                   {"crate", "create"},
                                   {"lst", "list"},
                                   {"ssh", "console"}}) {
    EXPECT_EQ(Run({"--url", "http://x", word, "web"}), 2);
    EXPECT_TRUE(Said(fmt::format("there is no command {}; did you mean `vmonce {}`?", word, ours)))
        << terminal_.err;
  }
  EXPECT_EQ(Run({"help", "quux"}), 2);
  EXPECT_TRUE(Said("there is no command quux\n")) << terminal_.err;
}

}  // namespace
}  // namespace vmonce::app
