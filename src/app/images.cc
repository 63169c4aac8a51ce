#include "app/commands.h"
#include "app/json_text.h"

namespace vmonce::app {
namespace {

constexpr Column kImageColumns[] = {{"NAME", "name"}, {"KIND", "kind"}, {"ALIASES", "aliases"}};

}  // namespace

void AddImages(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("images", "List the images that VMs can be made from");
  command->callback([&chosen] {
    chosen = [](const Invocation& run) {
      const auto result = Get(run, "/v1/images");
      if (!result.IsSuccess()) return ReportFailure(run, "images", result);
      PrintItems(run.world.terminal, run.globals.format, ListAt(result.json, "items"),
                 kImageColumns);
      return ExitCode::kDone;
    };
  });
}

}  // namespace vmonce::app
