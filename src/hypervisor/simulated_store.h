// The files of a simulated host: one JSON file for each domain, an empty file for each volume, and
// the marker. Blocking; used by SimulatedHost alone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "hypervisor/simulated_host.h"
#include "model/host.h"

namespace vmonce::hypervisor {

struct SimulatedState {
  std::optional<model::HostMarker> marker;
  std::vector<SimulatedDomain> domains;
  std::set<std::string> volumes;
};

// Makes the directory when it is not there. kInternal: something in it cannot be read.
Result<SimulatedState> LoadSimulatedState(const std::string& directory);

// Each is on disk on return, or changed nothing. Absent `domain` removes its file.
Status StoreMarker(const std::string& directory, const model::HostMarker& marker);
Status StoreDomain(const std::string& directory, const model::VmId& id,
                   const std::optional<SimulatedDomain>& domain);
Status StoreVolume(const std::string& directory, const std::string& name, bool is_there);

}  // namespace vmonce::hypervisor
