// Looks at every effect where it takes place, with the guard that its worker gave it: what a guard
// must refuse may not happen, whatever else would have made it harmless.
#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {
class SimulatedHost;
}

namespace vmonce::sim {

struct Stage;

// `reached` is the machine that `base` talks to as the host of that number, `clock` the one that
// deadlines are of. All of it outlives the door but `reached`, which it shares.
std::unique_ptr<ports::Hypervisor> Watched(Stage& stage, std::size_t machine,
                                           std::shared_ptr<hypervisor::SimulatedHost> reached,
                                           Clock& clock, std::unique_ptr<ports::Hypervisor> base);

}  // namespace vmonce::sim
