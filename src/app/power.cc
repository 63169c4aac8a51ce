#include "app/change.h"
#include "app/commands.h"
#include "app/lookup.h"

namespace vmonce::app {
namespace {

struct PowerFlags {
  std::vector<std::string> vms;
  std::string wait = "done";
};

ExitCode RunPower(const Invocation& run, const PowerFlags& flags, VmChange change) {
  const auto wait_for = ParseChangeWait(flags.wait);
  if (!wait_for) {
    run.messages.Say("error: --wait is accepted or done");
    return ExitCode::kUsage;
  }
  change.wait_for = *wait_for;
  ExitCode code = ExitCode::kDone;
  for (const std::string& name : flags.vms) {
    const auto vm = LookUpVm(run, name);
    code = FirstFailure(code, vm ? ChangeVm(run, *vm, change) : vm.error());
    if (run.world.stop.stop_requested()) break;
  }
  return code;
}

struct PowerCommand {
  const char* verb;
  const char* help;
  const char* done;
};

void AddOne(CLI::App& app, ClientCommand& chosen, const PowerCommand& power) {
  auto* command = app.add_subcommand(power.verb, power.help);
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<PowerFlags>();
  command->add_option("VM", flags->vms, "Names or ids")->required();
  command->add_option("--wait", flags->wait, "Wait until it is (default: done)")
      ->type_name("accepted|done");
  command->callback([&chosen, flags, power] {
    chosen = [flags, power](const Invocation& run) {
      return RunPower(run, *flags,
                      VmChange{.method = "POST",
                               .path_suffix = std::string("/") + power.verb,
                               .verb = power.verb,
                               .done = power.done});
    };
  });
}

}  // namespace

void AddPower(CLI::App& app, ClientCommand& chosen) {
  AddOne(app, chosen, {"start", "Start VMs", "is started"});
  AddOne(app, chosen, {"stop", "Stop VMs: gracefully first, then forced", "is stopped"});
  AddOne(app, chosen, {"reboot", "Reboot VMs", "is rebooted"});
}

}  // namespace vmonce::app
