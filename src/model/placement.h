// Which host gets a VM. Placement is server state, never part of what a request asks.
#pragma once

#include <optional>
#include <span>

#include "model/host.h"

namespace vmonce::model {

struct Candidate {
  Host host;
  bool is_reachable = false;
};

// Among hosts that are active (and not still returning from the dead), reachable and have room, the
// one with the largest free share of memory after placing; ties go to the smaller id, so that the
// choice is the same everywhere. std::nullopt when none has room. Capacities and amounts are not
// negative.
std::optional<HostId> PickHost(std::span<const Candidate> candidates, const Resources& demand);

}  // namespace vmonce::model
