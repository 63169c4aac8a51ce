#include "app/commands.h"

namespace vmonce::app {
namespace {

constexpr Column kImageColumns[] = {{"NAME", "name"}, {"KIND", "kind"}, {"ALIASES", "aliases"}};

}  // namespace

void AddImages(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("images", "List the images that VMs can be made from");
  command->callback([&chosen] {
    chosen = [](const Invocation& run) {
      const Listing listing = GetAll(run, "/v1/images", {});
      if (listing.failure) return ReportFailure(run, "images", *listing.failure);
      PrintItems(run.world.terminal, run.globals.format, listing.items, kImageColumns);
      return ExitCode::kDone;
    };
  });
}

}  // namespace vmonce::app
