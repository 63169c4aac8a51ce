// What systemd is told of this process, by the protocol of sd_notify(3). Without systemd
// (NOTIFY_SOCKET is unset) nobody is told anything.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace vmonce::app {

// `status` is one line for `systemctl status`.
void NotifyReady(std::string_view status);
void NotifyStopping();
void NotifyAlive();

// How often NotifyAlive() has to be called: half of the unit's WatchdogSec=. Absent: nobody waits
// for it.
std::optional<Milliseconds> AlivePeriod();

}  // namespace vmonce::app
