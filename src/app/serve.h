// The service process: the only production wiring.
#pragma once

#include <string>
#include <vector>

namespace vmonce::app {

struct ServeFlags {
  std::string config_path;             // "" for the default one, which may be absent.
  std::vector<std::string> overrides;  // "section.name=value", stronger than the file.
  bool behind_tls_proxy = false;       // server.behind_tls_proxy=true.
};

// Serves until it is told to stop. SIGHUP reads the TLS files again. Its exit code is the
// process's.
int RunServe(const ServeFlags& flags);

}  // namespace vmonce::app
