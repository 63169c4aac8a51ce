#include "app/vm_goal.h"

#include <fmt/format.h>

#include "app/json_text.h"
#include "app/lookup.h"
#include "client/url.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;
using boost::json::value;

constexpr std::pair<std::string_view, VmGoal> kGoals[] = {
    {"accepted", VmGoal::kAccepted}, {"started", VmGoal::kStarted}, {"address", VmGoal::kAddress},
    {"ready", VmGoal::kReady},       {"stopped", VmGoal::kStopped}, {"deleted", VmGoal::kDeleted},
};

std::string_view NameOfGoal(VmGoal goal) {
  for (const auto& [name, known] : kGoals) {
    if (known == goal) return name;
  }
  return "";
}

// What a person reads when it is reached.
std::string_view WordOf(VmGoal goal) {
  switch (goal) {
    case VmGoal::kAccepted: return "is accepted";
    case VmGoal::kStarted: return "is started";
    case VmGoal::kAddress: return "has an address";
    case VmGoal::kReady: return "is ready";
    case VmGoal::kStopped: return "is stopped";
    case VmGoal::kDeleted: return "is deleted";
  }
  return "";
}

}  // namespace

std::string AddressOf(const value& vm) {
  for (const value& address : ListAt(vm, "addresses")) {
    if (address.is_string()) return std::string(address.get_string());
  }
  for (const value& forward : ListAt(vm, "forwards")) {
    const auto port = NumberAt(forward, "host_port", 0);
    // Nothing until the VM is placed.
    if (port > 0) return fmt::format("{}:{}", TextAt(forward, "host_address"), port);
  }
  return "";
}

namespace {

GoalVerdict JudgeAddress(const value& vm) {
  if (!AddressOf(vm).empty()) return {GoalState::kReached, ""};
  const std::string network = TextAt(vm, "network");
  const bool has_forwards = !ListAt(vm, "forwards").empty();
  if ((network.empty() || network == "user") && !has_forwards) {
    return {GoalState::kNever,
            "in user-mode networking it has no address that others reach; look at its console"};
  }
  return {};
}

ExitCode ReportNever(const Invocation& run, const value& vm, std::string_view why) {
  run.messages.Say(fmt::format("error: {}: {}", NameOf(vm), why));
  if (const std::string detail = TextAt(vm, "failure.detail"); !detail.empty()) {
    run.messages.Say("  cause: " + detail);
    if (const auto repair = RepairOf(TextAt(vm, "failure.code")); !repair.empty()) {
      run.messages.Say("  repair: " + repair);
    }
    run.messages.Say("  code: " + TextAt(vm, "failure.code"));
  }
  if (const std::string id = TextAt(vm, "operation"); !id.empty()) {
    run.messages.Say("  operation: " + id);
  }
  return ExitCode::kFailed;
}

ExitCode ReportReached(const Invocation& run, const value& vm, VmGoal goal) {
  const std::string address = goal == VmGoal::kAddress ? ": " + AddressOf(vm) : "";
  run.messages.Say(fmt::format("{} {}{}", NameOf(vm), WordOf(goal), address));
  return ExitCode::kDone;
}

}  // namespace

std::optional<VmGoal> ParseVmGoal(std::string_view text) {
  for (const auto& [name, goal] : kGoals) {
    if (name == text) return goal;
  }
  return std::nullopt;
}

GoalVerdict JudgeGoal(const value& vm, VmGoal goal) {
  if (goal == VmGoal::kAccepted) return {GoalState::kReached, ""};
  const std::string state = TextAt(vm, "state");
  const std::string observed = TextAt(vm, "observed");
  if (goal == VmGoal::kDeleted) {
    return {state == "deleted" ? GoalState::kReached : GoalState::kNotYet, ""};
  }
  if (state == "deleted" || state == "deleting") {
    return {GoalState::kNever, fmt::format("it is {}", state)};
  }
  if (state == "failed") return {GoalState::kNever, "it has failed"};
  switch (goal) {
    case VmGoal::kStarted:
      return {observed == "running" ? GoalState::kReached : GoalState::kNotYet, ""};
    case VmGoal::kStopped:
      return {observed == "stopped" && state == "ready" ? GoalState::kReached : GoalState::kNotYet,
              ""};
    case VmGoal::kReady: return {state == "ready" ? GoalState::kReached : GoalState::kNotYet, ""};
    case VmGoal::kAddress: return JudgeAddress(vm);
    case VmGoal::kAccepted:
    case VmGoal::kDeleted: break;  // Answered above.
  }
  return {};
}

ExitCode WaitForGoal(const Invocation& run, value& vm, VmGoal goal) {
  const std::string path = "/v1/vms/" + client::PercentEncode(TextAt(vm, "id"));
  for (int polls = 0;; ++polls) {
    const GoalVerdict verdict = JudgeGoal(vm, goal);
    if (verdict.state == GoalState::kReached) return ReportReached(run, vm, goal);
    if (verdict.state == GoalState::kNever) return ReportNever(run, vm, verdict.why);
    const auto wait =
        polls < limits::kClientFastPolls ? limits::kClientPollFast : limits::kClientPollSlow;
    const auto left =
        std::chrono::duration_cast<Milliseconds>(Deadline(run) - run.world.clock.Monotonic());
    const std::string later =
        CommandHint(run, fmt::format("wait {} --for {}", NameOf(vm), NameOfGoal(goal)));
    if (wait >= left) {
      run.messages.Say(fmt::format("{} is still {}: the waiting has ended; go on with: {}",
                                   NameOf(vm), TextAt(vm, "state"), later));
      return ExitCode::kRunning;
    }
    if (!run.world.threads.SleepFor(wait, run.world.stop)) {
      run.messages.Say(fmt::format("detached: nothing was changed; go on with: {}", later));
      return ExitCode::kDetached;
    }
    client::ApiRequest request;
    request.path = path;
    // All the time there is: a server that is restarted is waited for.
    request.budget = left - wait;
    const client::CallResult now = run.client.Call(request, run.world.stop);
    if (!now.IsSuccess()) return ReportFailure(run, "waiting for " + NameOf(vm), now);
    vm = now.json;
  }
}

}  // namespace vmonce::app
