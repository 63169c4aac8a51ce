#include "app/service_manager.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <cstdint>

namespace vmonce::app {

void NotifyReady(std::string_view status) {
  sd_notify(0, fmt::format("READY=1\nSTATUS={}", status).c_str());
}

void NotifyStopping() {
  sd_notify(0, "STOPPING=1\nSTATUS=Finishing what was begun; machines keep running");
}

void NotifyAlive() { sd_notify(0, "WATCHDOG=1"); }

std::optional<Milliseconds> AlivePeriod() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return Milliseconds(static_cast<std::int64_t>(microseconds / 2'000));
}

}  // namespace vmonce::app
