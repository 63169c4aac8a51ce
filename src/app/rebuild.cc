#include "app/commands.h"
#include "app/offline_rebuild.h"

namespace vmonce::app {

void AddRebuild(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand(
      "rebuild", "Read the machines on the hosts into a lost or older ledger; no service may run");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<RebuildFlags>();
  command->add_option("--config,-c", flags->offline.config_path, "The service's configuration file")
      ->type_name("FILE");
  command->add_option("--set", flags->offline.overrides, "As for serve")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command->add_flag("--dry-run", flags->is_dry_run, "Only tell what would be done");
  command
      ->add_option("--without", flags->without,
                   "Leave this host out; no create is taken until it is read or declared dead")
      ->allow_extra_args(false)
      ->type_name("HOST");
  command->add_flag("--run-stopped", flags->run_stopped,
                    "Machines that are off, and that the ledger does not know, are to run");
  command->add_option("--ledger-id", flags->ledger_id, "Where hosts carry several (12 digits)")
      ->type_name("ID");
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RebuildOffline(run, *flags); };
  });
}

}  // namespace vmonce::app
