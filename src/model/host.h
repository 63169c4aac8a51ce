// Hosts: hypervisor connections with a capacity, and how they prove who they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/ids.h"

namespace vmonce::model {

// Amounts that are reserved, limited and given back together.
struct Resources {
  std::int64_t vms = 0;
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::int64_t disk_gib = 0;

  bool operator==(const Resources&) const = default;
  Resources operator+(const Resources& o) const {
    return {vms + o.vms, cpus + o.cpus, memory_mib + o.memory_mib, disk_gib + o.disk_gib};
  }
  Resources operator-(const Resources& o) const {
    return {vms - o.vms, cpus - o.cpus, memory_mib - o.memory_mib, disk_gib - o.disk_gib};
  }
  // Every amount is at most the limit's.
  bool FitsIn(const Resources& limit) const {
    return vms <= limit.vms && cpus <= limit.cpus && memory_mib <= limit.memory_mib &&
           disk_gib <= limit.disk_gib;
  }
};

enum class HostState {
  kActive,
  kDraining,  // Keeps what it has; gets nothing new.
  kDead,      // Declared so by an operator: nothing is done there, and what reappears is an orphan.
};

std::string_view ToString(HostState state);
std::optional<HostState> ParseHostState(std::string_view text);

// What is written on a host at registration and read at every connect: libvirt's own host UUID is
// random per process in embedded mode and proves nothing (protocol section 8).
struct HostMarker {
  LedgerId ledger;
  HostId host;
  bool operator==(const HostMarker&) const = default;
};

struct Host {
  HostId id;
  std::string uri;
  HostState state = HostState::kActive;
  bool is_registered = false;  // The marker was written once; from then on it must be there.
  // Was declared dead, and no sweep since has stopped what was moved away or deleted meanwhile:
  // nothing new is placed there.
  bool is_returning = false;
  // A rebuild of the ledger has not read it, or not all that is there: machines on it may be
  // missing in the ledger.
  bool is_unread = false;
  Resources capacity;  // What may be reserved there.
  Resources reserved;  // What is.
};

}  // namespace vmonce::model
