#include "app/commands.h"
#include "app/json_text.h"

namespace vmonce::app {
namespace {

constexpr Column kQuotaColumns[] = {{"WHAT", "what"}, {"USED", "used"}, {"LIMIT", "limit"}};
constexpr std::string_view kAmounts[] = {"vms", "cpus", "memory_mib", "disk_gib", "keys"};

ExitCode RunQuota(const Invocation& run) {
  const auto result = Get(run, "/v1/quota");
  if (!result.IsSuccess()) return ReportFailure(run, "quota", result);
  std::vector<boost::json::value> rows;
  for (const std::string_view amount : kAmounts) {
    boost::json::object row{{"what", amount}};
    row["used"] = CellAt(result.json, "used." + std::string(amount));
    row["limit"] = CellAt(result.json, "limit." + std::string(amount));
    rows.emplace_back(std::move(row));
  }
  PrintDocument(run.world.terminal, run.globals.format, result.json, rows, kQuotaColumns);
  return ExitCode::kDone;
}

}  // namespace

void AddQuota(CLI::App& app, ClientCommand& chosen) {
  auto* command =
      app.add_subcommand("quota", "Show what the project may hold, and what it does hold");
  command->callback([&chosen] { chosen = &RunQuota; });
}

}  // namespace vmonce::app
