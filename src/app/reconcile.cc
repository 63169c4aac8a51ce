#include "app/commands.h"
#include "app/json_text.h"

namespace vmonce::app {
namespace {

constexpr Column kReportColumns[] = {
    {"HOST", "host"},
    {"DOMAINS", "domains"},
    {"OURS", "ours"},
    {"MISSING", "missing"},
    {"FOUND", "found"},
    {"MADE_DUE", "made_due"},
    {"STRAYS", "strays"},
    {"QUARANTINED", "quarantined"},
    {"REMOVED", "removed"},
    {"KEPT_VOLUMES", "kept_volumes"},
    {"SECOND_COPIES", "second_copies"},
    {"ALARMED", "alarmed"},
    {"PROBLEM", "problem"},
};

ExitCode RunReconcile(const Invocation& run) {
  const auto result = Change(run, "POST", "/v1/reconcile", NewKey(run.world));
  if (!result.IsSuccess()) return ReportFailure(run, "reconcile", result);
  const auto hosts = ListAt(result.json, "hosts");
  if (hosts.empty()) {
    run.messages.Say("reconciling has been started");
    return ExitCode::kDone;
  }
  PrintDocument(run.world.terminal, run.globals.format, result.json, hosts, kReportColumns);
  return ExitCode::kDone;
}

}  // namespace

void AddReconcile(CLI::App& app, ClientCommand& chosen) {
  auto* command =
      app.add_subcommand("reconcile", "Compare hosts and ledger now, not at the next period");
  command->callback([&chosen] { chosen = &RunReconcile; });
}

}  // namespace vmonce::app
