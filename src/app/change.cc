#include "app/change.h"

#include <fmt/format.h>

#include "app/json_text.h"
#include "app/lookup.h"

namespace vmonce::app {

ExitCode ChangeVm(const Invocation& run, const boost::json::value& vm, const VmChange& change) {
  const std::string name = NameOf(vm);
  const std::string what = fmt::format("{} of {}", change.verb, name);
  const std::string key = NewKey(run.world);
  const auto result =
      Change(run, change.method, "/v1/vms/" + TextAt(vm, "id") + change.path_suffix, key);
  if (!result.IsSuccess()) {
    const ExitCode code = ReportFailure(run, what, result);
    if (result.may_have_happened) {
      run.messages.Say("  it may have been accepted; look with: " +
                       CommandHint(run, "explain " + key));
    }
    return code;
  }
  const auto* operation = At(result.json, "operation");
  if (operation == nullptr || TextAt(*operation, "id").empty()) {
    // 200 without an operation: the VM was in that state already.
    run.messages.Say(fmt::format("{} {} already", name, change.done));
    return ExitCode::kDone;
  }
  Progress progress(run.messages, run.world.clock, run.begin);
  const FollowResult followed =
      Follow(run, TextAt(*operation, "id"), change.wait_for, progress, *operation);
  progress.End();
  return ReportEnd(
      run, followed, what,
      fmt::format("{} {} after {}", name, change.done, Elapsed(progress.SinceBegin())));
}

std::optional<WaitFor> ParseChangeWait(std::string_view text) {
  if (text == "accepted") return WaitFor::kAccepted;
  if (text == "done") return WaitFor::kEnd;
  return std::nullopt;
}

}  // namespace vmonce::app
