#include <fmt/format.h>

#include "app/change.h"
#include "app/commands.h"
#include "app/json_text.h"
#include "app/lookup.h"

namespace vmonce::app {
namespace {

struct DeleteFlags {
  std::vector<std::string> vms;
  bool is_yes = false;
  std::string wait = "done";
};

// Asks on a terminal; elsewhere only --yes is an answer.
std::optional<ExitCode> Confirm(const Invocation& run, const std::vector<boost::json::value>& vms) {
  Terminal& terminal = run.world.terminal;
  if (!terminal.traits().in_is_terminal) {
    run.messages.Say("error: delete needs --yes where nobody can be asked; nothing was deleted");
    return ExitCode::kUsage;
  }
  for (const auto& vm : vms) {
    terminal.Err(Printable(fmt::format("delete {} ({}, {}) and its disk?\n", NameOf(vm),
                                       TextAt(vm, "state"), TextAt(vm, "id"))));
  }
  terminal.Err("type yes to go on: ");
  const auto answer = terminal.ReadLine();
  if (answer == "yes" || answer == "y") return std::nullopt;
  run.messages.Say("nothing was deleted");
  return ExitCode::kFailed;
}

ExitCode RunDelete(const Invocation& run, const DeleteFlags& flags) {
  const auto wait_for = ParseChangeWait(flags.wait);
  if (!wait_for) {
    run.messages.Say("error: --wait is accepted or done");
    return ExitCode::kUsage;
  }
  // All are found before one is deleted: a mistyped name deletes nothing.
  std::vector<boost::json::value> vms;
  for (const std::string& name : flags.vms) {
    auto vm = LookUpVm(run, name);
    if (!vm) return vm.error();
    vms.push_back(std::move(*vm));
  }
  if (!flags.is_yes) {
    if (const auto refused = Confirm(run, vms)) return *refused;
  }
  ExitCode code = ExitCode::kDone;
  for (const auto& vm : vms) {
    const VmChange change{.method = "DELETE",
                          .path_suffix = "",
                          .verb = "delete",
                          .done = "is deleted",
                          .wait_for = *wait_for};
    code = FirstFailure(code, ChangeVm(run, vm, change));
    if (run.world.stop.stop_requested()) break;
  }
  return code;
}

}  // namespace

void AddDelete(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("delete", "Delete VMs and their disks");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<DeleteFlags>();
  command->add_option("VM", flags->vms, "Names or ids")->required();
  command->add_flag("--yes,-y", flags->is_yes, "Do not ask");
  command->add_option("--wait", flags->wait, "Wait until it is (default: done)")
      ->type_name("accepted|done");
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RunDelete(run, *flags); };
  });
}

}  // namespace vmonce::app
