#include "app/follow.h"

#include <fmt/format.h>

#include "app/json_text.h"
#include "client/url.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;
using boost::json::value;
using client::CallEnd;
using client::CallResult;

constexpr std::size_t kTimelineTail = 5;

Milliseconds TimeLeft(const Invocation& run) {
  return std::chrono::duration_cast<Milliseconds>(Deadline(run) - run.world.clock.Monotonic());
}

bool HasReached(const value& operation, WaitFor wait_for) {
  if (HasEnded(operation)) return true;
  if (wait_for != WaitFor::kStarted) return wait_for == WaitFor::kAccepted;
  const auto items = ListAt(operation, "items");
  return !items.empty() && std::ranges::all_of(items, [](const value& item) {
    const std::string phase = TextAt(item, "phase");
    return phase == "done" || (phase == "forward" && TextAt(item, "step_name") == "publish");
  });
}

CallResult Poll(const Invocation& run, std::string_view operation_id) {
  client::ApiRequest request;
  request.path = "/v1/operations/" + client::PercentEncode(operation_id);
  // All the time there is: a server that is restarted goes on with the operation.
  request.budget = TimeLeft(run);
  return run.client.Call(request, run.world.stop);
}

FollowEnd EndOf(const CallResult& result) {
  if (result.end == CallEnd::kInterrupted) return FollowEnd::kInterrupted;
  return result.end == CallEnd::kGaveUp ? FollowEnd::kUnanswered : FollowEnd::kRefused;
}

void SayTimelineTail(const Invocation& run, const std::string& operation_id) {
  const CallResult result =
      Get(run, "/v1/operations/" + client::PercentEncode(operation_id) + "/timeline");
  if (!result.IsSuccess()) return;
  const auto entries = ListAt(result.json, "items");
  const std::size_t begin = entries.size() > kTimelineTail ? entries.size() - kTimelineTail : 0;
  if (!entries.empty()) run.messages.Say("  last of the timeline:");
  for (std::size_t i = begin; i < entries.size(); ++i) {
    run.messages.Say(fmt::format("    {}  {}  {}", TextAt(entries[i], "at"),
                                 TextAt(entries[i], "event"), TextAt(entries[i], "detail")));
  }
}

}  // namespace

bool HasEnded(const value& operation) {
  const std::string state = TextAt(operation, "state");
  return state == "succeeded" || state == "failed" || state == "cancelled";
}

FollowResult Follow(const Invocation& run, std::string_view operation_id, WaitFor wait_for,
                    Progress& progress, value known) {
  FollowResult result;
  result.operation = std::move(known);
  for (int polls = 0;; ++polls) {
    if (!result.operation.is_null()) {
      progress.Update(result.operation);
      if (HasReached(result.operation, wait_for)) {
        result.end = FollowEnd::kReached;
        return result;
      }
      const auto wait =
          polls < limits::kClientFastPolls ? limits::kClientPollFast : limits::kClientPollSlow;
      if (wait >= TimeLeft(run)) return result;
      if (!run.world.threads.SleepFor(wait, run.world.stop)) {
        result.end = FollowEnd::kInterrupted;
        return result;
      }
    }
    result.last = Poll(run, operation_id);
    if (!result.last.IsSuccess() || TextAt(result.last.json, "state").empty()) {
      result.end = EndOf(result.last);
      return result;
    }
    result.operation = result.last.json;
  }
}

value FailureOf(const value& operation) {
  if (const value* failure = At(operation, "failure"); failure && failure->is_object()) {
    return *failure;
  }
  for (const value& item : ListAt(operation, "items")) {
    if (const value* failure = At(item, "failure"); failure && failure->is_object()) {
      return *failure;
    }
  }
  return nullptr;
}

void ReportOperationFailure(const Invocation& run, const value& operation, std::string_view what) {
  const value failure = FailureOf(operation);
  const std::string code = TextAt(failure, "code");
  const std::string detail = TextAt(failure, "detail");
  const std::string state = TextAt(operation, "state");
  run.messages.Say(fmt::format("error: {} {}{}{}", what,
                               state == "cancelled" ? "was " + state : state,
                               detail.empty() ? "" : ": ", detail));
  if (const auto repair = RepairOf(code); !repair.empty()) {
    run.messages.Say("  repair: " + repair);
  }
  const std::string id = TextAt(operation, "id");
  SayTimelineTail(run, id);
  run.messages.Say("  operation: " + id);
  if (!code.empty()) run.messages.Say("  code: " + code);
}

ExitCode ReportEnd(const Invocation& run, const FollowResult& followed, std::string_view what,
                   std::string_view done) {
  const std::string id = TextAt(followed.operation, "id");
  const std::string later = id.empty() ? "" : "; follow it with: " + CommandHint(run, "wait " + id);
  switch (followed.end) {
    case FollowEnd::kReached:
      if (TextAt(followed.operation, "state") == "succeeded") {
        run.messages.Say(done);
        return ExitCode::kDone;
      }
      if (!HasEnded(followed.operation)) {
        run.messages.Say(fmt::format("{}: accepted{}", what, later));
        return ExitCode::kDone;
      }
      ReportOperationFailure(run, followed.operation, what);
      return ExitCode::kFailed;
    case FollowEnd::kTimedOut:
      run.messages.Say(fmt::format("{}: still running{}", what, later));
      return ExitCode::kRunning;
    case FollowEnd::kInterrupted:
      run.messages.Say(fmt::format("{}: detached, the server goes on{}", what, later));
      return ExitCode::kDetached;
    case FollowEnd::kUnanswered:
      (void)ReportFailure(run, what, followed.last);
      run.messages.Say(
          fmt::format("  it was accepted and goes on when the server is back{}", later));
      return ExitCode::kUnreachable;
    case FollowEnd::kRefused: return ReportFailure(run, what, followed.last);
  }
  return ExitCode::kFailed;
}

}  // namespace vmonce::app
