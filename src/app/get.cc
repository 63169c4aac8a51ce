#include "app/commands.h"
#include "app/lookup.h"

namespace vmonce::app {

void AddGet(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("get", "Show one VM");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto vm = std::make_shared<std::string>();
  command->add_option("VM", *vm, "Name or id")->required();
  command->callback([&chosen, vm] {
    chosen = [vm](const Invocation& run) {
      const auto found = LookUpVm(run, *vm);
      if (!found) return found.error();
      PrintOne(run.world.terminal, run.globals.format, *found);
      return ExitCode::kDone;
    };
  });
}

}  // namespace vmonce::app
