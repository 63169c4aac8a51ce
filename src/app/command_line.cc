#include "app/command_line.h"

#include <fmt/format.h>

#include "app/client_tls.h"
#include "app/client_token.h"
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
  app.add_option("--url", raw.flags.url, "Server (VMONCE_URL; default http://127.0.0.1:8080)");
  app.add_option("--profile", raw.flags.profile, "Profile of client.toml (VMONCE_PROFILE)");
  app.add_option("--cacert", raw.flags.cacert,
                 "File of the authorities to believe for https:// (VMONCE_CACERT)");
  app.add_option("--client-cert", raw.flags.client_cert,
                 "File of the certificate to show (VMONCE_CLIENT_CERT)");
  app.add_option("--client-key", raw.flags.client_key, "File of its key (VMONCE_CLIENT_KEY)");
  app.add_option("--token-file", raw.token_file,
                 "File with the token (VMONCE_TOKEN, VMONCE_TOKEN_FILE, ~/.config/vmonce/tokens)");
  app.add_option("-o,--output", raw.flags.output, "table (default), json, jsonl, yaml or name");
  app.add_flag("--json", raw.is_json_line, "One line of JSON");
  app.add_option("--timeout", raw.timeout,
                 "End the waiting after this long (30s, 5m), never the operation");
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
  AddQuota(app, chosen);
  AddConfig(app, chosen);
}

void AddServe(CLI::App& app, std::optional<ServeFlags>& chosen) {
  auto* command = app.add_subcommand("serve", "Run the service");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<ServeFlags>();
  command->add_option("--config,-c", flags->config_path, "Configuration file");
  command->add_option("--set", flags->overrides, "section.name=value, stronger than the file")
      ->allow_extra_args(false);
  command->add_flag("--check", flags->is_check, "Only look whether it would start; change nothing");
  command->add_flag("--behind-tls-proxy", flags->behind_tls_proxy,
                    "A proxy speaks TLS for this service: it may listen beyond loopback");
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

// CLI11 speaks in exceptions, help included; they stop here.
std::optional<ExitCode> Parse(CLI::App& app, const std::vector<std::string>& arguments,
                              Terminal& terminal) {
  try {
    // CLI11 takes them last one first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    terminal.Out(HelpOf(app));
    return ExitCode::kDone;
  } catch (const CLI::ParseError& mistake) {
    terminal.Err(
        fmt::format("error: {}\n  repair: `vmonce --help` shows the commands, `vmonce "
                    "COMMAND --help` their flags\n",
                    Printable(mistake.what())));
    return ExitCode::kUsage;
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
  CLI::App app{"vmonce creates virtual machines exactly once", "vmonce"};
  RawGlobals raw;
  ClientCommand command;
  std::optional<ServeFlags> serve;
  app.footer(ExitCodeHelp());
  AddGlobals(app, raw);
  AddServe(app, serve);
  AddClientCommands(app, command);
  AddVersion(app, command);
  app.require_subcommand(1);
  if (const auto ended = Parse(app, arguments, terminal)) return *ended;
  if (serve) return *serve;
  auto globals = ReadGlobals(raw, environment);
  if (!globals) {
    terminal.Err("error: " + Printable(globals.error().detail) + "\n");
    return ExitCode::kUsage;
  }
  return ParsedClient{std::move(*globals), std::move(command)};
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
