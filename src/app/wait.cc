// wait: goes on where an earlier command stopped waiting.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/follow.h"
#include "app/json_text.h"
#include "app/lookup.h"
#include "base/uuid.h"

namespace vmonce::app {
namespace {

// A VM's create decides what it becomes; an id may be an operation's or a VM's.
ExitCode FollowToEnd(const Invocation& run, const std::string& operation, std::string_view what) {
  Progress progress(run.messages, run.world.clock, run.begin);
  const FollowResult followed = Follow(run, operation, WaitFor::kEnd, progress);
  progress.End();
  const ExitCode code = ReportEnd(run, followed, what, fmt::format("{} has succeeded", what));
  if (code == ExitCode::kDone) {
    PrintOne(run.world.terminal, run.globals.format, followed.operation);
  }
  return code;
}

ExitCode RunWait(const Invocation& run, const std::string& target) {
  if (ParseUuid(target)) {
    const auto operation = Get(run, "/v1/operations/" + target);
    if (operation.IsSuccess()) return FollowToEnd(run, target, "operation " + target);
    const bool is_unknown = operation.response && operation.response->status == 404;
    if (!is_unknown) return ReportFailure(run, "wait", operation);
  }
  const auto vm = LookUpVm(run, target);
  if (!vm) return vm.error();
  const std::string id = TextAt(*vm, "id");
  const Listing listing = GetAll(run, "/v1/operations", {{"vm", id}});
  if (listing.failure) return ReportFailure(run, "wait", *listing.failure);
  // Operations of one VM run one after the other: when all that were there have ended, it is at
  // rest.
  for (const auto& operation : listing.items) {
    if (HasEnded(operation)) continue;
    const std::string what = fmt::format("{} of {}", TextAt(operation, "kind"), NameOf(*vm));
    const ExitCode code = FollowToEnd(run, TextAt(operation, "id"), what);
    if (code != ExitCode::kDone) return code;
  }
  const auto now = LookUpVm(run, id);
  if (!now) return now.error();
  const std::string state = TextAt(*now, "state");
  run.messages.Say(fmt::format("{} is {}", NameOf(*now), state));
  return state == "failed" || state == "missing" ? ExitCode::kFailed : ExitCode::kDone;
}

}  // namespace

void AddWait(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("wait", "Wait for an operation, or for all of a VM's");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto target = std::make_shared<std::string>();
  command->add_option("TARGET", *target, "An operation's id, or a VM's name or id")->required();
  command->callback([&chosen, target] {
    chosen = [target](const Invocation& run) { return RunWait(run, *target); };
  });
}

}  // namespace vmonce::app
