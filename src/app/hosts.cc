#include "app/commands.h"
#include "app/json_text.h"

namespace vmonce::app {
namespace {

constexpr Column kHostColumns[] = {
    {"ID", "id"},
    {"STATE", "state"},
    {"REACHABLE", "reachable"},
    {"ACCELERATOR", "accelerator"},
    {"CAPACITY", "capacity"},
    {"RESERVED", "reserved"},
    {"URI", "uri"},
    {"PROBLEM", "problem"},
};

}  // namespace

void AddHosts(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("hosts", "List hosts, what they can take and what they hold");
  command->callback([&chosen] {
    chosen = [](const Invocation& run) {
      const auto result = Get(run, "/v1/hosts");
      if (!result.IsSuccess()) return ReportFailure(run, "hosts", result);
      PrintItems(run.world.terminal, run.globals.format, ListAt(result.json, "items"),
                 kHostColumns);
      return ExitCode::kDone;
    };
  });
}

}  // namespace vmonce::app
