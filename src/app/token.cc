#include <fmt/format.h>

#include "app/commands.h"
#include "app/duration.h"
#include "app/json_text.h"
#include "app/offline_tokens.h"
#include "base/rfc3339.h"
#include "client/url.h"
#include "model/token.h"

namespace vmonce::app {
namespace {

namespace json = boost::json;

struct TokenFlags {
  std::string project, role = "member", name, expires, id;
  OfflineFlags offline;
};

constexpr Column kTokenColumns[] = {
    {"ID", "id"},
    {"PROJECT", "project"},
    {"ROLE", "role"},
    {"NAME", "name"},
    {"PREFIX", "prefix"},
    {"STATE", "state"},
    {"CREATED", "created_at"},
    {"EXPIRES", "expires_at"},
};

// The secret alone, so that it can be piped; the document where one was asked for.
void PrintSecret(const Invocation& run, const json::value& answer) {
  const bool is_document = run.globals.format == OutputFormat::kJson ||
                           run.globals.format == OutputFormat::kJsonLine ||
                           run.globals.format == OutputFormat::kYaml;
  if (is_document) {
    PrintOne(run.world.terminal, run.globals.format, answer);
  } else {
    run.world.terminal.Out(TextAt(answer, "secret") + "\n");
  }
  run.messages.Say(fmt::format(
      "token {} of project {}, role {}; this secret is shown once and kept nowhere",
      TextAt(answer, "token.id"), TextAt(answer, "token.project"), TextAt(answer, "token.role")));
  if (!run.globals.token.empty()) return;
  run.messages.Say(
      "from now on the service asks everybody for a token: name a file that holds it with "
      "--token-file or VMONCE_TOKEN_FILE");
}

ExitCode RunCreate(const Invocation& run, const TokenFlags& flags) {
  json::object body{{"project", flags.project}, {"role", flags.role}, {"name", flags.name}};
  if (!flags.expires.empty()) {
    const auto life = ParseDuration(flags.expires);
    if (!life || *life <= Milliseconds(0)) {
      run.messages.Say(fmt::format("error: --expires {}: write 12h or 30d", flags.expires));
      return ExitCode::kUsage;
    }
    body["expires_at"] = FormatRfc3339(run.world.clock.Now() + *life);
  }
  if (flags.offline.is_offline) return CreateTokenOffline(run, flags.offline, body, &PrintSecret);
  const client::CallResult result = Post(run, "/v1/tokens", body);
  if (!result.IsSuccess()) return ReportFailure(run, "token create", result);
  if (TextAt(result.json, "secret").empty()) {
    // A try whose answer was lost made it.
    const std::string id = TextAt(result.json, "token.id");
    run.messages.Say("error: token " + id + " was made, and its secret was lost with the answer");
    run.messages.Say("  repair: " + CommandHint(run, "token revoke " + id) + ", then make another");
    return ExitCode::kFailed;
  }
  PrintSecret(run, result.json);
  return ExitCode::kDone;
}

ExitCode RunList(const Invocation& run, const TokenFlags& flags) {
  if (flags.offline.is_offline) {
    const auto items = ListTokensOffline(run, flags.offline);
    if (!items) return items.error();
    PrintItems(run.world.terminal, run.globals.format, *items, kTokenColumns);
    return ExitCode::kDone;
  }
  const auto result = Get(run, "/v1/tokens");
  if (!result.IsSuccess()) return ReportFailure(run, "token list", result);
  PrintItems(run.world.terminal, run.globals.format, ListAt(result.json, "items"), kTokenColumns);
  return ExitCode::kDone;
}

ExitCode RunRevoke(const Invocation& run, const TokenFlags& flags) {
  if (flags.offline.is_offline) return RevokeTokenOffline(run, flags.offline, flags.id);
  const std::string path = "/v1/tokens/" + client::PercentEncode(flags.id);
  const auto result = Change(run, "DELETE", path, NewKey(run.world));
  if (!result.IsSuccess()) return ReportFailure(run, "token revoke", result);
  run.messages.Say("token " + flags.id + " is revoked, from now on");
  return ExitCode::kDone;
}

void AddOffline(CLI::App& command, OfflineFlags& flags) {
  command.add_flag("--offline", flags.is_offline,
                   "In the ledger itself, on the service's machine and while it is stopped");
  command.add_option("--config,-c", flags.config_path,
                     "With --offline: the service's configuration file");
  command.add_option("--set", flags.overrides, "With --offline: as for serve")
      ->allow_extra_args(false);
}

using Run = ExitCode (*)(const Invocation&, const TokenFlags&);

}  // namespace

void AddToken(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("token", "Make, list or revoke tokens (for the role admin)");
  command->require_subcommand(1);
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<TokenFlags>();
  const auto add = [&](const char* name, const char* help, Run body) {
    auto* sub = command->add_subcommand(name, help);
    AddOffline(*sub, flags->offline);
    sub->callback([&chosen, flags, body] {
      chosen = [flags, body](const Invocation& run) { return body(run, *flags); };
    });
    return sub;
  };
  auto* create = add("create", "Make a token; its secret goes to stdout, once", &RunCreate);
  create->add_option("--project", flags->project, "The project it belongs to")->required();
  create->add_option("--role", flags->role, "metrics, viewer, member (default) or admin")
      ->check(CLI::IsMember({"metrics", "viewer", "member", "admin"}));
  create->add_option("--name", flags->name, "Who or what uses it");
  create->add_option("--expires", flags->expires,
                     "How long it lives (12h, 30d); default: for good");
  add("list", "List tokens, never their secrets", &RunList);
  add("revoke", "End a token, from now on", &RunRevoke)
      ->add_option("TOKEN", flags->id, "Its id, not its secret")
      ->required();
}

}  // namespace vmonce::app
