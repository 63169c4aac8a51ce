#include "app/offline_tokens.h"

#include "api/rest/json_of.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "ledger/sqlite_ledger.h"
#include "service/tokens.h"

namespace vmonce::app {
namespace {

namespace json = boost::json;

// Outlives the ledger that writes to it.
struct Offline {
  std::unique_ptr<Logger> logger;
  std::unique_ptr<ledger::SqliteLedger> ledger;
};

std::expected<Offline, ExitCode> Open(const Invocation& run, const OfflineFlags& flags) {
  const auto config = ReadOfflineConfig(run, flags, "token");
  if (!config) return std::unexpected(config.error());
  Offline offline;
  offline.logger = NewStderrLogger(run.world.clock, LogLevel::kWarning);
  ledger::SqliteLedgerOptions options;
  options.path = config->state.LedgerPath();
  auto opened = ledger::SqliteLedger::Open(options, run.world.clock, run.world.random,
                                           run.world.threads, *offline.logger);
  if (!opened) {
    return std::unexpected(RefuseOffline(
        run, opened.error().detail,
        "while the service runs, leave --offline out; it needs a token of the role admin then"));
  }
  offline.ledger = std::move(*opened);
  return offline;
}

ExitCode Report(const Invocation& run, const Error& error) {
  run.messages.Say("error: " + error.detail);
  return ExitCode::kFailed;
}

}  // namespace

ExitCode CreateTokenOffline(const Invocation& run, const OfflineFlags& flags,
                            const json::object& wanted,
                            void (*print)(const Invocation&, const json::value&)) {
  service::NewToken token;
  token.project.value = wanted.at("project").as_string();
  token.role = model::ParseRole(wanted.at("role").as_string()).value_or(model::Role::kViewer);
  token.name = wanted.at("name").as_string();
  if (const auto* expires = wanted.if_contains("expires_at")) {
    token.expires = ParseRfc3339(expires->as_string());
  }
  if (!model::IsProjectName(token.project.value)) {
    run.messages.Say("error: --project: use 1 to 63 letters, digits, '-', '_' and '.'");
    return ExitCode::kUsage;
  }
  const auto offline = Open(run, flags);
  if (!offline) return offline.error();
  const service::MintedToken minted = service::MintToken(token, run.world.clock, run.world.random);
  const Result<ports::TokenMade> made = offline->ledger->CreateToken(minted.token);
  if (!made && made.error().code == ErrorCode::kConflict) {
    return RefuseOffline(run, "nothing was made: " + made.error().detail,
                         "make one with --role admin first, then this one");
  }
  if (!made) return Report(run, made.error());
  print(run, json::object{{"token", rest::JsonOf(made->token, run.world.clock.Now())},
                          {"secret", minted.secret}});
  return ExitCode::kDone;
}

std::expected<std::vector<json::value>, ExitCode> ListTokensOffline(const Invocation& run,
                                                                    const OfflineFlags& flags) {
  const auto offline = Open(run, flags);
  if (!offline) return std::unexpected(offline.error());
  const Result<std::vector<model::Token>> tokens = offline->ledger->Tokens();
  if (!tokens) return std::unexpected(Report(run, tokens.error()));
  std::vector<json::value> items;
  for (const model::Token& token : *tokens) {
    items.emplace_back(rest::JsonOf(token, run.world.clock.Now()));
  }
  return items;
}

ExitCode RevokeTokenOffline(const Invocation& run, const OfflineFlags& flags,
                            const std::string& id) {
  const std::optional<Uuid> uuid = ParseUuid(id);
  if (!uuid) {
    run.messages.Say("error: tokens are revoked by id; `vmonce token list --offline` shows them");
    return ExitCode::kUsage;
  }
  const auto offline = Open(run, flags);
  if (!offline) return offline.error();
  const auto token = offline->ledger->RevokeToken(model::TokenId{*uuid});
  if (!token) return Report(run, token.error());
  if (!token->has_value()) {
    run.messages.Say("error: there is no token " + id);
    return ExitCode::kNotFound;
  }
  run.messages.Say("token " + id + " is revoked");
  return ExitCode::kDone;
}

}  // namespace vmonce::app
