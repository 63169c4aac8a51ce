#include "app/offline_state.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vmonce::app {

ExitCode RefuseOffline(const Invocation& run, const std::string& what, const std::string& repair) {
  run.messages.Say("error: " + what);
  run.messages.Say("  repair: " + repair);
  return ExitCode::kFailed;
}

std::expected<Config, ExitCode> ReadOfflineConfig(const Invocation& run, const OfflineFlags& flags,
                                                  std::string_view command) {
  const std::optional<std::string> path =
      flags.config_path.empty() ? std::nullopt : std::optional(flags.config_path);
  auto config = ReadConfig(path, flags.overrides, run.world.environment);
  if (!config) {
    for (const ConfigMistake& mistake : config.error()) run.messages.Say(mistake.Format());
    return std::unexpected(ExitCode::kUsage);
  }
  const std::string& dir = config->state.dir;
  struct stat seen{};
  if (stat(dir.c_str(), &seen) != 0 || !S_ISDIR(seen.st_mode)) {
    return std::unexpected(RefuseOffline(
        run, "there is no state directory " + dir,
        "make it, owned by the service's user and for nobody else, or name the right --config"));
  }
  if (seen.st_uid != geteuid()) {
    return std::unexpected(RefuseOffline(
        run, fmt::format("the state directory {} belongs to user {}", dir, seen.st_uid),
        fmt::format("run this as its owner: sudo -u '#{}' vmonce {} ...", seen.st_uid, command)));
  }
  return std::move(*config);
}

}  // namespace vmonce::app
