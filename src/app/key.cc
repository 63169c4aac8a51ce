#include <fmt/format.h>

#include "app/commands.h"
#include "app/json_text.h"

namespace vmonce::app {
namespace {

constexpr Column kReleaseColumns[] = {{"WAS KNOWN", "was_known"}, {"VMS", "vms"}};

ExitCode RunRelease(const Invocation& run, const std::string& key) {
  const auto result = Post(run, "/v1/keys/release", {{"key", key}});
  if (!result.IsSuccess()) return ReportFailure(run, "key release", result);
  run.messages.Say(IsTrueAt(result.json, "was_known")
                       ? "the key is released: the next create with it makes something new"
                       : "nothing has this key; it may be used");
  const std::vector<boost::json::value> rows{result.json};
  PrintDocument(run.world.terminal, run.globals.format, result.json, rows, kReleaseColumns);
  return ExitCode::kDone;
}

}  // namespace

void AddKey(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("key", "Take an idempotency key off what is gone");
  command->require_subcommand(1);
  auto* release = command->add_subcommand(
      "release", "Let a key be used anew once all that was made with it is deleted");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto key = std::make_shared<std::string>();
  release->add_option("KEY", *key, "The key, as the create was sent with it")->required();
  release->callback(
      [&chosen, key] { chosen = [key](const Invocation& run) { return RunRelease(run, *key); }; });
}

}  // namespace vmonce::app
