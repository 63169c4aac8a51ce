// How a command ended, as a script sees it. docs/cli.md and the help say the same.
#pragma once

#include <string>

#include "client/problem.h"

namespace vmonce::app {

enum class ExitCode {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,        // The command or a value in it is wrong; nothing was done.
  kUnreachable = 3,  // The server does not answer, or has kept asking to come back later.
  kRunning = 4,      // The waiting ended, the operation goes on.
  kKeyReused = 5,    // The key was used before with another request.
  kNotFound = 6,
  kDenied = 7,  // The caller may not do this, or a quota is spent.
  kDetached = 130,
};

// The end of the help.
std::string ExitCodeHelp();

// By the API's code first, by the status where the code is not known.
ExitCode ExitCodeOf(const client::ApiProblem& problem);

}  // namespace vmonce::app
