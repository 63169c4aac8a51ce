// wait: goes on where an earlier command stopped waiting.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/follow.h"
#include "app/json_text.h"
#include "app/lookup.h"
#include "app/vm_goal.h"
#include "base/uuid.h"

namespace vmonce::app {
namespace {

using boost::json::value;

struct WaitFlags {
  std::string target, goal;
};

// Follows one operation; says how it, or the waiting, ended.
ExitCode FollowToEnd(const Invocation& run, const std::string& operation, std::string_view what,
                     value& seen) {
  Progress progress(run.messages, run.world.clock, run.begin, ProgressOf::kEarlier);
  const FollowResult followed = Follow(run, operation, WaitFor::kEnd, progress);
  progress.End();
  seen = followed.operation;
  return ReportEnd(run, followed, what, fmt::format("{} has succeeded", what));
}

ExitCode WaitForOperation(const Invocation& run, const std::string& id) {
  value operation;
  const ExitCode code = FollowToEnd(run, id, "operation " + id, operation);
  if (code == ExitCode::kDone) PrintOne(run.world.terminal, run.globals.format, operation);
  return code;
}

// Each VM's own end; prints those that have reached it.
ExitCode WaitForGoals(const Invocation& run, std::vector<value> vms, VmGoal goal) {
  ExitCode code = ExitCode::kDone;
  std::vector<value> reached;
  for (value& vm : vms) {
    const ExitCode end = WaitForGoal(run, vm, goal);
    if (end == ExitCode::kDone) reached.push_back(vm);
    if (code == ExitCode::kDone) code = end;
    if (run.world.stop.stop_requested()) break;
  }
  if (!reached.empty()) {
    PrintItems(run.world.terminal, run.globals.format, reached, kVmColumns);
  }
  return code;
}

// Operations of one VM run one after the other: when all that were there have ended, it is at rest.
ExitCode WaitForRest(const Invocation& run, const value& vm) {
  const std::string id = TextAt(vm, "id");
  const Listing listing = GetAll(run, "/v1/operations", {{"vm", id}});
  if (listing.failure) return ReportFailure(run, "wait", *listing.failure);
  for (const auto& operation : listing.items) {
    if (HasEnded(operation)) continue;
    const std::string what = fmt::format("{} of {}", TextAt(operation, "kind"), NameOf(vm));
    value seen;
    const ExitCode code = FollowToEnd(run, TextAt(operation, "id"), what, seen);
    if (code != ExitCode::kDone) return code;
  }
  const auto now = LookUpVm(run, id);
  if (!now) return now.error();
  const std::string state = TextAt(*now, "state");
  run.messages.Say(fmt::format("{} is {}", NameOf(*now), state));
  PrintItems(run.world.terminal, run.globals.format, {*now}, kVmColumns);
  return state == "failed" || state == "missing" ? ExitCode::kFailed : ExitCode::kDone;
}

// The VMs that an operation made or changed.
std::expected<std::vector<value>, ExitCode> VmsOf(const Invocation& run, const value& operation) {
  std::vector<value> vms;
  for (const value& id : ListAt(operation, "vms")) {
    if (!id.is_string()) continue;
    auto vm = LookUpVm(run, std::string_view(id.get_string()));
    if (!vm) return std::unexpected(vm.error());
    vms.push_back(std::move(*vm));
  }
  return vms;
}

ExitCode RunWait(const Invocation& run, const WaitFlags& flags) {
  const auto goal = ParseVmGoal(flags.goal);
  if (!goal && !flags.goal.empty()) {
    run.messages.Say("error: --for is accepted, started, address, ready, stopped or deleted");
    return ExitCode::kUsage;
  }
  // An id may be an operation's or a VM's.
  if (ParseUuid(flags.target)) {
    const auto operation = Get(run, "/v1/operations/" + flags.target);
    const bool is_unknown = operation.response && operation.response->status == 404;
    if (!operation.IsSuccess() && !is_unknown) return ReportFailure(run, "wait", operation);
    if (operation.IsSuccess() && !goal) return WaitForOperation(run, flags.target);
    if (operation.IsSuccess()) {
      const auto vms = VmsOf(run, operation.json);
      return vms ? WaitForGoals(run, *vms, *goal) : vms.error();
    }
  }
  auto vm = LookUpVm(run, flags.target);
  if (!vm) return vm.error();
  return goal ? WaitForGoals(run, {std::move(*vm)}, *goal) : WaitForRest(run, *vm);
}

}  // namespace

void AddWait(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("wait", "Wait for an operation, or for a state of a VM");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<WaitFlags>();
  command->add_option("TARGET", flags->target, "An operation's id, or a VM's name or id")
      ->required();
  command
      ->add_option("--for", flags->goal,
                   "Until the VM is (default: until all its operations have ended)")
      ->type_name("accepted|started|address|ready|stopped|deleted");
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RunWait(run, *flags); };
  });
}

}  // namespace vmonce::app
