#include <fmt/format.h>

#include "app/commands.h"
#include "app/console_text.h"
#include "app/json_text.h"
#include "app/lookup.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

struct ConsoleFlags {
  std::string vm;
  bool is_followed = false;
};

// A console that does not exist yet is waited for when it is followed.
bool IsNotReady(const client::CallResult& call) {
  return call.response && client::ReadProblem(*call.response).code == "console_not_ready";
}

ExitCode RunConsole(const Invocation& run, const ConsoleFlags& flags) {
  const auto vm = LookUpVm(run, flags.vm);
  if (!vm) return vm.error();
  const std::string id = TextAt(*vm, "id");
  std::int64_t offset = 0;
  while (true) {
    const ConsolePart part = ReadConsole(run, id, offset);
    const bool is_waited_for = flags.is_followed && IsNotReady(part.call);
    if (!part.call.IsSuccess() && !is_waited_for) {
      return ReportFailure(run, "console of " + NameOf(*vm), part.call);
    }
    run.world.terminal.Out(part.bytes);
    const bool has_more = part.next > offset;
    offset = part.next;
    if (has_more) continue;
    if (!flags.is_followed) return ExitCode::kDone;
    if (run.globals.timeout && run.world.clock.Monotonic() >= Deadline(run)) {
      return ExitCode::kDone;
    }
    if (!run.world.threads.SleepFor(model::limits::kClientPollFast, run.world.stop)) {
      return ExitCode::kDetached;
    }
  }
}

}  // namespace

void AddConsole(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("console", "Print a VM's serial console");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<ConsoleFlags>();
  command->add_option("VM", flags->vm, "Name or id")->required();
  command->add_flag("--follow,-f", flags->is_followed, "Go on as the guest writes, until Ctrl-C");
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RunConsole(run, *flags); };
  });
}

}  // namespace vmonce::app
