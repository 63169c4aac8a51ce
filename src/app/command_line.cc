#include "app/command_line.h"

#include <fmt/format.h>

#include "app/client_tls.h"
#include "app/client_token.h"
#include "app/config_reader.h"
#include "app/duration.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

struct RawGlobals {
  ClientFlags flags;
  std::string timeout, token_file;
  bool is_json_line = false;
};

// The flags of the program itself, accepted before and after the subcommand's name.
void AddGlobals(CLI::App& app, RawGlobals& raw) {
  app.fallthrough();
  app.add_option("--url", raw.flags.url, "Server (VMONCE_URL; default http://127.0.0.1:8080)")
      ->type_name("URL");
  app.add_option("--profile", raw.flags.profile, "Profile of client.toml (VMONCE_PROFILE)")
      ->type_name("NAME");
  app.add_option("--cacert", raw.flags.cacert,
                 "File of the authorities to believe for https:// (VMONCE_CACERT)")
      ->type_name("FILE");
  app.add_option("--client-cert", raw.flags.client_cert,
                 "File of the certificate to show (VMONCE_CLIENT_CERT)")
      ->type_name("FILE");
  app.add_option("--client-key", raw.flags.client_key, "File of its key (VMONCE_CLIENT_KEY)")
      ->type_name("FILE");
  app.add_option("--token-file", raw.token_file,
                 "File with the token (VMONCE_TOKEN, VMONCE_TOKEN_FILE, ~/.config/vmonce/tokens)")
      ->type_name("FILE");
  app.add_option("-o,--output", raw.flags.output, "Format of what is printed (default: table)")
      ->type_name("table|json|jsonl|yaml|name");
  app.add_flag("--json", raw.is_json_line, "One line of JSON");
  app.add_option("--timeout", raw.timeout,
                 "End the waiting after this long (30s, 5m), never the operation")
      ->type_name("DURATION");
}

std::string JoinMistakes(const std::vector<ConfigMistake>& mistakes) {
  std::string text;
  for (const ConfigMistake& mistake : mistakes) {
    text += (text.empty() ? "" : "\n       ") + mistake.Format();
  }
  return text;
}

Result<Globals> ReadGlobals(const RawGlobals& raw, const Environ& environment) {
  if (!raw.flags.output.empty() && !ParseOutputFormat(raw.flags.output)) {
    return Fail(ErrorCode::kInvalid, "-o is table, json, jsonl, yaml or name");
  }
  auto settings = ReadClientSettings(raw.flags, environment);
  if (!settings) return Fail(ErrorCode::kInvalid, JoinMistakes(settings.error()));
  Globals globals;
  auto tls = ReadClientTls(*settings);
  if (!tls) return std::unexpected(tls.error());
  globals.tls = std::move(*tls);
  globals.url = std::move(settings->url);
  auto token = FindToken(globals.url, raw.token_file, environment);
  if (!token) return std::unexpected(std::move(token.error()));
  globals.token = std::move(*token);
  globals.format = raw.is_json_line ? OutputFormat::kJsonLine : settings->output;
  globals.explanation = std::move(settings->explanation);
  if (!raw.flags.profile.empty()) globals.reach += "--profile " + raw.flags.profile + " ";
  if (!raw.flags.url.empty()) globals.reach += "--url " + globals.url + " ";
  if (!raw.flags.cacert.empty()) globals.reach += "--cacert " + globals.tls.ca_file + " ";
  if (!raw.timeout.empty()) {
    globals.timeout = ParseTimeout(raw.timeout);
    if (!globals.timeout) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("--timeout {}: write 30s, 5m or 2h", raw.timeout));
    }
  }
  return globals;
}

void AddClientCommands(CLI::App& app, ClientCommand& chosen) {
  AddCreate(app, chosen);
  AddList(app, chosen);
  AddGet(app, chosen);
  AddDelete(app, chosen);
  AddPower(app, chosen);
  AddConsole(app, chosen);
  AddOperations(app, chosen);
  AddExplain(app, chosen);
  AddImages(app, chosen);
  AddHosts(app, chosen);
  AddReconcile(app, chosen);
  AddWait(app, chosen);
  AddToken(app, chosen);
  AddKey(app, chosen);
  AddQuota(app, chosen);
  AddConfig(app, chosen);
  AddRebuild(app, chosen);
  AddDoctor(app, chosen);
}

void AddServe(CLI::App& app, std::optional<ServeFlags>& chosen) {
  auto* command = app.add_subcommand("serve", "Run the service");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<ServeFlags>();
  command->add_option("--config,-c", flags->config_path, "Configuration file")->type_name("FILE");
  command->add_option("--set", flags->overrides, "section.name=value, stronger than the file")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command->add_flag("--check", flags->is_check, "Only look whether it would start; change nothing");
  command->add_flag("--behind-tls-proxy", flags->behind_tls_proxy,
                    "A proxy speaks TLS for this service: it may listen beyond loopback");
  command->callback([&chosen, flags] { chosen = *flags; });
}

void AddSim(CLI::App& app, std::optional<SimFlags>& chosen) {
  auto* command = app.add_subcommand(
      "sim",
      "Run the service in made-up worlds where all goes wrong, and look for broken promises");
  const auto flags = std::make_shared<SimFlags>();
  command->add_option("--seeds", flags->seeds, "Worlds to run (default 1..1000)")
      ->type_name("FIRST..LAST");
  command->add_option("--seed", flags->seed, "One world alone")->type_name("N");
  command->add_flag("--trace", flags->is_traced, "Tell its whole story");
  command->add_option("--jobs", flags->jobs, "Processes (default: one for each processor)")
      ->type_name("N");
  command->add_option("--replicas", flags->replicas, "Of each world, 1 to 5 (default: drawn)")
      ->type_name("N");
  command->add_option("--faults", flags->faults, "Which faults a world has (default: swarm)")
      ->type_name("swarm|all|none");
  command->add_option("--minutes", flags->minutes, "End after so long")->type_name("N");
  command->add_option("--mutant", flags->mutant, "Break one rule on purpose")->type_name("NAME");
  command->add_flag("--quick", flags->is_quick, "Name a broken world, and do not make it smaller");
  command->add_flag("--must-reach-all", flags->must_reach_all,
                    "Fail when a rare place was never reached");
  command->callback([&chosen, flags] { chosen = *flags; });
}

void AddVersion(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("version", "Print the version");
  command->callback([&chosen] {
    chosen = [](const Invocation& run) {
      run.world.terminal.Out("vmonce " VMONCE_VERSION "\n");
      return ExitCode::kDone;
    };
  });
}

// The whole of the command line, and where what is read from it goes.
struct Program {
  Program();

  CLI::App app{"vmonce creates virtual machines exactly once", "vmonce"};
  RawGlobals raw;
  ClientCommand command;
  std::optional<ServeFlags> serve;
  std::optional<SimFlags> sim;
};

Program::Program() {
  app.footer(ExitCodeHelp());
  app.set_version_flag("--version", "vmonce " VMONCE_VERSION, "Print the version and exit");
  AddGlobals(app, raw);
  AddServe(app, serve);
  AddClientCommands(app, command);
  AddSim(app, sim);
  AddVersion(app, command);
  AddShellCommands(app, command);
  app.require_subcommand(1);
}

// Of the innermost subcommand that was named.
std::string HelpOf(const CLI::App& app) {
  const CLI::App* named = &app;
  std::string before;
  while (!named->get_subcommands().empty()) {
    before += (before.empty() ? "" : " ") + named->get_name();
    named = named->get_subcommands().front();
  }
  return named->help(before);
}

// The first word that is no flag and no flag's value.
std::string FirstWord(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with('-')) return arguments[i];
    const CLI::Option* flag = app.get_option_no_throw(arguments[i]);
    if (flag != nullptr && flag->get_items_expected_max() > 0) ++i;
  }
  return "";
}

// What other programs of this kind call it.
std::string_view Translate(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"ls", "list"},        {"ps", "list"},      {"rm", "delete"},     {"remove", "delete"},
      {"destroy", "delete"}, {"show", "get"},     {"info", "get"},      {"describe", "get"},
      {"launch", "create"},  {"run", "create"},   {"new", "create"},    {"add", "create"},
      {"ssh", "console"},    {"logs", "console"}, {"shutdown", "stop"}, {"restart", "reboot"},
      {"ops", "operations"}, {"check", "doctor"}, {"daemon", "serve"},
  };
  for (const auto& [theirs, ours] : kWords) {
    if (theirs == word) return ours;
  }
  return "";
}

// "" when the command exists.
std::string UnknownCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::string word = FirstWord(app, arguments);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (word.empty() || std::ranges::find(names, word) != names.end()) return "";
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string_view meant = Translate(word);
  if (meant.empty()) meant = Nearest(word, views);
  std::string text = fmt::format("error: there is no command {}", word);
  if (!meant.empty()) text += fmt::format("; did you mean `vmonce {}`?", meant);
  return text;
}

ExitCode ReportMistake(const CLI::App& app, const std::vector<std::string>& arguments,
                       std::string_view mistake, Terminal& terminal) {
  if (arguments.empty()) {
    terminal.Err(app.help());
    return ExitCode::kUsage;
  }
  std::string text = UnknownCommand(app, arguments);
  if (text.empty()) text = fmt::format("error: {}", mistake);
  terminal.Err(
      fmt::format("{}\n  repair: `vmonce --help` shows the commands, `vmonce "
                  "COMMAND --help` their flags\n",
                  Printable(text)));
  return ExitCode::kUsage;
}

// CLI11 speaks in exceptions, help included; they stop here.
std::optional<ExitCode> Parse(CLI::App& app, std::vector<std::string> arguments,
                              Terminal& terminal) {
  // "help create" is what "create --help" is.
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  try {
    // CLI11 takes them last one first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    if (UnknownCommand(app, arguments).empty()) {
      terminal.Out(HelpOf(app));
      return ExitCode::kDone;
    }
    return ReportMistake(app, arguments, "", terminal);
  } catch (const CLI::CallForVersion& version) {
    terminal.Out(std::string(version.what()) + "\n");
    return ExitCode::kDone;
  } catch (const CLI::ParseError& mistake) {
    return ReportMistake(app, arguments, mistake.what(), terminal);
  }
}

client::ClientOptions OptionsOf(const Globals& globals) {
  return client::ClientOptions{
      .base_url = globals.url,
      .token = globals.token,
      .backoff = {limits::kClientBackoffBase, limits::kClientBackoffCap},
      .attempt = limits::kClientAttempt,
      .retry_after_max = limits::kRetryAfterMax,
      .max_tries = limits::kClientAttempts,
  };
}

}  // namespace

Parsed ParseCommandLine(const std::vector<std::string>& arguments, Terminal& terminal,
                        const Environ& environment) {
  Program program;
  if (const auto ended = Parse(program.app, arguments, terminal)) return *ended;
  if (program.serve) return *program.serve;
  if (program.sim) return *program.sim;
  auto globals = ReadGlobals(program.raw, environment);
  if (!globals) {
    terminal.Err("error: " + Printable(globals.error().detail) + "\n");
    return ExitCode::kUsage;
  }
  return ParsedClient{std::move(*globals), std::move(program.command)};
}

CommandDoc DescribeCommandLine() {
  const Program program;
  return DescribeCommand(program.app);
}

ExitCode RunClient(const ParsedClient& parsed, const World& world) {
  Messages messages(world.terminal);
  client::RetryingClient client(world.transport, world.clock, world.random, world.threads,
                                OptionsOf(parsed.globals));
  client.OnRetry([&messages](const client::RetryNotice& notice) {
    messages.Say(fmt::format("{}: {}; trying again in {:.1f} s",
                             notice.is_unreachable ? "server not reached" : "no final answer",
                             notice.cause, static_cast<double>(notice.wait.count()) / 1'000));
  });
  const Invocation run{world, parsed.globals, client, messages, world.clock.Monotonic()};
  const ExitCode code = parsed.command(run);
  // Data that did not arrive is no success.
  if (code == ExitCode::kDone && !world.terminal.IsOutWhole()) return ExitCode::kFailed;
  return code;
}

std::optional<Milliseconds> ParseTimeout(std::string_view text) {
  const bool is_bare = !text.empty() && text.back() >= '0' && text.back() <= '9';
  const auto duration = ParseDuration(is_bare ? fmt::format("{}s", text) : std::string(text));
  if (!duration || *duration > limits::kClientWaitMax) return std::nullopt;
  return duration;
}

}  // namespace vmonce::app
