#include "app/commands.h"
#include "app/json_text.h"

namespace vmonce::app {
namespace {

struct ListFlags {
  std::string name, state, key, label;
  bool is_all = false;
};

ExitCode RunList(const Invocation& run, const ListFlags& flags) {
  Query query;
  if (!flags.name.empty()) query.emplace_back("name", flags.name);
  if (!flags.state.empty()) query.emplace_back("state", flags.state);
  if (!flags.key.empty()) query.emplace_back("idempotency_key", flags.key);
  if (!flags.label.empty()) query.emplace_back("label", flags.label);
  // Rows of deleted VMs live on for weeks, for their keys' sake; they are shown when asked for.
  if (flags.is_all) query.emplace_back("deleted", "true");
  Listing listing = GetAll(run, "/v1/vms", std::move(query));
  if (listing.failure) return ReportFailure(run, "list", *listing.failure);
  if (!flags.is_all && flags.state.empty() && flags.key.empty()) {
    std::erase_if(listing.items, [](const auto& vm) { return TextAt(vm, "state") == "deleted"; });
  }
  PrintItems(run.world.terminal, run.globals.format, listing.items, kVmColumns);
  return ExitCode::kDone;
}

}  // namespace

void AddList(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("list", "List VMs");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<ListFlags>();
  command->add_option("--name", flags->name, "Only the VM of this name")->type_name("VM");
  command->add_option("--state", flags->state, "Only VMs in this state")
      ->type_name("pending|creating|ready|failed|missing|deleting|deleted");
  command->add_option("--label", flags->label, "Only VMs with this label")->type_name("K=V");
  command->add_flag("--all", flags->is_all, "Deleted VMs too");
  command->add_option("--key", flags->key, "Only VMs made with this idempotency key")
      ->type_name("KEY");
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RunList(run, *flags); };
  });
}

}  // namespace vmonce::app
