#include "app/commands.h"

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
      const Listing listing = GetAll(run, "/v1/hosts", {});
      if (listing.failure) return ReportFailure(run, "hosts", *listing.failure);
      PrintItems(run.world.terminal, run.globals.format, listing.items, kHostColumns);
      return ExitCode::kDone;
    };
  });
}

}  // namespace vmonce::app
