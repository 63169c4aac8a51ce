// Whether a program of this machine listens on a port already.
#pragma once

#include <string>

#include "model/forward.h"

namespace vmonce::hypervisor {

// Tries to bind, as QEMU would, and lets go at once. Only "address in use" is a yes: what else may
// stand in QEMU's way is nothing that another port would mend. `address` is IPv4, dotted.
bool IsPortInUse(const std::string& address, const model::HostPort& port);

}  // namespace vmonce::hypervisor
