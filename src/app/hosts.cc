#include <fmt/format.h>

#include "app/commands.h"
#include "app/json_text.h"

namespace vmonce::app {
namespace {

constexpr Column kHostColumns[] = {
    {"ID", "id"},
    {"STATE", "state"},
    {"RETURNING", "returning"},
    {"REACHABLE", "reachable"},
    {"SINCE", "since"},
    {"ACCELERATOR", "accelerator"},
    {"CAPACITY", "capacity"},
    {"RESERVED", "reserved"},
    {"URI", "uri"},
    {"PROBLEM", "problem"},
};

// What an operator may declare of a host.
struct Declaration {
  const char* verb;
  const char* help;
  const char* done;     // Said when it is declared.
  const char* warning;  // Said before; nullptr: nothing to be warned of.
};

constexpr Declaration kDeclarations[] = {
    {"drain", "Place nothing new on a host; it keeps what it has",
     "gets nothing new and keeps what it has; `vmonce host activate` uses it again", nullptr},
    {"activate", "Use a host", "is used", nullptr},
    {"dead", "Declare that a host is lost with what ran there",
     "is dead: creates go on elsewhere, deletes complete without it, its VMs are missing",
     "Only for a host whose machines run no more. Switch it off first. Nothing is done there any "
     "more, its VMs are missing until it is back, and a VM that is being created there is made on "
     "another host. What still runs on it runs unwatched, beside its replacement."},
};

ExitCode RunList(const Invocation& run) {
  const auto result = Get(run, "/v1/hosts");
  if (!result.IsSuccess()) return ReportFailure(run, "hosts", result);
  PrintItems(run.world.terminal, run.globals.format, ListAt(result.json, "items"), kHostColumns);
  return ExitCode::kDone;
}

// Asks on a terminal; elsewhere only --yes is an answer.
std::optional<ExitCode> Confirm(const Invocation& run, const std::string& host,
                                const Declaration& declared) {
  Terminal& terminal = run.world.terminal;
  if (!terminal.traits().in_is_terminal) {
    run.messages.Say(
        fmt::format("error: host {} needs --yes where nobody can be asked; nothing was declared",
                    declared.verb));
    return ExitCode::kUsage;
  }
  terminal.Err(Printable(fmt::format("declare host {} {}?\n", host, declared.verb)));
  terminal.Err(fmt::format("{}\ntype yes to go on: ", declared.warning));
  const auto answer = terminal.ReadLine();
  if (answer == "yes" || answer == "y") return std::nullopt;
  run.messages.Say("nothing was declared");
  return ExitCode::kFailed;
}

ExitCode RunDeclare(const Invocation& run, const std::string& host, bool is_yes,
                    const Declaration& declared) {
  if (declared.warning != nullptr && !is_yes) {
    if (const auto refused = Confirm(run, host, declared)) return *refused;
  }
  const std::string path = fmt::format("/v1/hosts/{}/{}", host, declared.verb);
  const auto result = Change(run, "POST", path, NewKey(run.world));
  if (!result.IsSuccess()) {
    return ReportFailure(run, fmt::format("host {} {}", declared.verb, host), result);
  }
  const bool is_returning = IsTrueAt(result.json, "returning");
  const bool is_activated = TextAt(result.json, "state") == "active";
  std::string done = fmt::format("host {} {}", host, declared.done);
  if (is_returning && is_activated) {
    done += " again once a sweep has stopped what was deleted or moved away meanwhile";
  }
  run.messages.Say(done);
  PrintOne(run.world.terminal, run.globals.format, result.json);
  return ExitCode::kDone;
}

struct DeclareFlags {
  std::string host;
  bool is_yes = false;
};

void AddDeclaration(CLI::App& app, ClientCommand& chosen, const Declaration& declared) {
  auto* command = app.add_subcommand(declared.verb, declared.help);
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<DeclareFlags>();
  command->add_option("HOST", flags->host, "Id, as `vmonce host list` shows it")->required();
  if (declared.warning != nullptr) command->add_flag("--yes,-y", flags->is_yes, "Do not ask");
  command->callback([&chosen, flags, declared] {
    chosen = [flags, declared](const Invocation& run) {
      return RunDeclare(run, flags->host, flags->is_yes, declared);
    };
  });
}

}  // namespace

void AddHosts(CLI::App& app, ClientCommand& chosen) {
  constexpr const char* kListHelp = "List hosts, what they can take and what they hold";
  auto* command = app.add_subcommand("hosts", kListHelp);
  command->callback([&chosen] { chosen = &RunList; });
  auto* host = app.add_subcommand("host", "List hosts; drain, activate or give up one");
  host->require_subcommand(1);
  auto* list = host->add_subcommand("list", kListHelp);
  list->callback([&chosen] { chosen = &RunList; });
  for (const Declaration& declared : kDeclarations) AddDeclaration(*host, chosen, declared);
}

}  // namespace vmonce::app
