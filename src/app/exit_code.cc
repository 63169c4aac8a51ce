#include "app/exit_code.h"

namespace vmonce::app {

std::string ExitCodeHelp() {
  return "Exit codes:\n"
         "  0    done\n"
         "  1    failed\n"
         "  2    usage: the command or a value in it is wrong\n"
         "  3    server unreachable, or not ready for as long as was waited\n"
         "  4    still running: the waiting ended, the operation goes on\n"
         "  5    the key was used before with another request\n"
         "  6    not found\n"
         "  7    denied\n"
         "  130  detached by Ctrl-C: the operation goes on\n"
         "Data goes to stdout, everything else to stderr.\n"
         "Environment: VMONCE_URL, VMONCE_PROFILE, VMONCE_OUTPUT, VMONCE_CLIENT_CONFIG,\n"
         "VMONCE_TOKEN, VMONCE_TOKEN_FILE, VMONCE_CACERT, VMONCE_CLIENT_CERT, VMONCE_CLIENT_KEY,\n"
         "NO_COLOR, CLICOLOR_FORCE, XDG_STATE_HOME, XDG_CONFIG_HOME.";
}

ExitCode ExitCodeOf(const client::ApiProblem& problem) {
  if (problem.code == "idempotency_key_reused") return ExitCode::kKeyReused;
  // A machine that the hypervisor refuses is a failure of the create, not of its spelling.
  if (problem.code == "hypervisor_refused") return ExitCode::kFailed;
  switch (problem.status) {
    case 400: return ExitCode::kUsage;
    case 401:
    case 403: return ExitCode::kDenied;
    case 404: return ExitCode::kNotFound;
    case 408:
    case 429:
    case 502:
    case 503:
    case 504: return ExitCode::kUnreachable;
    default: return ExitCode::kFailed;
  }
}

}  // namespace vmonce::app
