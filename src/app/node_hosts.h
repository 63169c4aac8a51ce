// The doors to the configured hosts, as every wiring makes them.
#pragma once

#include <memory>
#include <vector>

#include "app/config.h"
#include "app/node.h"
#include "hypervisor/factory.h"
#include "workflows/fleet.h"

namespace vmonce::app {

using HostDoors = std::vector<std::unique_ptr<hypervisor::HostThreads>>;

// In the order of config.hosts; nothing is connected. To be called before other threads run:
// libvirt reads the environment when its first door is made. What is borrowed outlives the doors,
// and every call that they gave up.
Result<HostDoors> MakeHostDoors(const Config& config, const NodeDoors& doors,
                                const hypervisor::CallObserver& on_call = {});

workflows::HostPlan HostPlanOf(const HostConfig& host);

}  // namespace vmonce::app
