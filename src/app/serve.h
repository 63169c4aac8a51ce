// The service process: the only production wiring.
#pragma once

#include <string>
#include <vector>

namespace vmonce::app {

struct ServeFlags {
  std::string config_path;             // "" for the default one, which may be absent.
  std::vector<std::string> overrides;  // "section.name=value", stronger than the file.
};

// Serves until it is told to stop. Its exit code is the process's.
int RunServe(const ServeFlags& flags);

}  // namespace vmonce::app
