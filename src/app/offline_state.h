// What commands share that work on the service's state directory while no service runs.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"
#include "app/invocation.h"

namespace vmonce::app {

struct OfflineFlags {
  bool is_offline = false;
  std::string config_path;
  std::vector<std::string> overrides;
};

ExitCode RefuseOffline(const Invocation& run, const std::string& what, const std::string& repair);

// The service's configuration. Refused, with what to do, unless the state directory is there and
// the caller owns it: files of another owner would lock the service out of its own ledger.
std::expected<Config, ExitCode> ReadOfflineConfig(const Invocation& run, const OfflineFlags& flags,
                                                  std::string_view command);

}  // namespace vmonce::app
