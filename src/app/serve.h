// The service process: the only production wiring.
#pragma once

#include <string>
#include <vector>

namespace vmonce::app {

struct ServeFlags {
  std::string config_path;             // "" for the default one, which may be absent.
  std::vector<std::string> overrides;  // "section.name=value", stronger than the file.
  bool is_check = false;               // Only look whether it would start.
  bool behind_tls_proxy = false;       // server.behind_tls_proxy=true.
};

// Serves until it is told to stop; SIGHUP reads the TLS files again. Or looks, prints a line for
// each thing looked at, and serves nothing. Its exit code is the process's.
int RunServe(const ServeFlags& flags);

}  // namespace vmonce::app
