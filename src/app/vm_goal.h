// Waiting for a state of a VM that is no operation's end: that it runs, has an address, is stopped,
// is gone.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "app/invocation.h"

namespace vmonce::app {

enum class VmGoal { kAccepted, kStarted, kAddress, kReady, kStopped, kDeleted };

std::optional<VmGoal> ParseVmGoal(std::string_view text);  // "accepted", "started", ...

enum class GoalState {
  kReached,
  kNotYet,
  kNever,  // Nothing that is under way leads there; `why` tells.
};

struct GoalVerdict {
  GoalState state = GoalState::kNotYet;
  std::string why;
};

// Where others reach it: "10.0.0.7", or where a port of its host leads to it, "127.0.0.1:20022"; ""
// when nothing does.
std::string AddressOf(const boost::json::value& vm);

// By what the server says of the VM now. `vm` is a VM of the API.
GoalVerdict JudgeGoal(const boost::json::value& vm, VmGoal goal);

// Polls until the goal is reached, or Deadline(run) has passed. Says on stderr how that ended.
// `vm`, as last seen, becomes what was seen last.
ExitCode WaitForGoal(const Invocation& run, boost::json::value& vm, VmGoal goal);

}  // namespace vmonce::app
