// Rebuilding the ledger of the configured state directory from the configured hosts, while no
// service runs.
#pragma once

#include <string>
#include <vector>

#include "app/invocation.h"
#include "app/offline_state.h"

namespace vmonce::app {

struct RebuildFlags {
  OfflineFlags offline;
  std::vector<std::string> without;
  std::string ledger_id;
  bool is_dry_run = false;
  bool run_stopped = false;
};

// kDone only when every host was read, and nothing is left to a person. Refused, with what to do,
// while a service runs.
ExitCode RebuildOffline(const Invocation& run, const RebuildFlags& flags);

}  // namespace vmonce::app
