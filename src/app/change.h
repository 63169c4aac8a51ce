// A change of one VM that is no create: sent under a new key, then followed.
#pragma once

#include <string>
#include <string_view>

#include "app/follow.h"
#include "app/invocation.h"

namespace vmonce::app {

struct VmChange {
  std::string method;       // "POST" or "DELETE".
  std::string path_suffix;  // "/start"; "" for the VM itself.
  std::string_view verb;    // "start"
  std::string_view done;    // "is started"
  WaitFor wait_for = WaitFor::kEnd;
};

ExitCode ChangeVm(const Invocation& run, const boost::json::value& vm, const VmChange& change);

// The flag of delete, start, stop and reboot; nothing when the text is neither "accepted" nor
// "done".
std::optional<WaitFor> ParseChangeWait(std::string_view text);

// The worse of two ends, for a command that names several VMs: the first one that is not done.
inline ExitCode FirstFailure(ExitCode a, ExitCode b) { return a == ExitCode::kDone ? b : a; }

}  // namespace vmonce::app
