// `vmonce sim`: many made-up worlds, or one told in full (docs/simulation.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/exit_code.h"
#include "app/terminal.h"

namespace vmonce::app {

struct SimFlags {
  std::string seeds = "1..1000";
  std::optional<std::uint64_t> seed;
  bool is_traced = false;
  int jobs = 0;  // 0: as many as processors.
  std::optional<int> replicas;
  std::string faults = "swarm";
  int minutes = 0;  // 0: until all seeds are done.
  std::string mutant;
  bool must_reach_all = false;
  bool is_quick = false;  // A broken world is named and not made smaller.
};

// Precondition: the process has one thread, since it makes others.
ExitCode RunSim(const SimFlags& flags, Terminal& terminal);

}  // namespace vmonce::app
