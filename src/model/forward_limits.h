// The bounds of port forwards and networks, each with its reason.
#pragma once

#include <cstddef>

namespace vmonce::model::limits {

// Of one VM: each is a socket of its QEMU.
inline constexpr std::size_t kForwards = 16;
inline constexpr int kPortMax = 65'535;
// Below, only root may listen; QEMU need not be root.
inline constexpr int kHostPortMin = 1'024;
// Beside Linux's own range of outgoing ports (32768 to 60999), which would take them at random.
inline constexpr int kForwardPortsFirst = 20'000;
inline constexpr int kForwardPortsLast = 29'999;
// Of the ports that a VM would get next: looked at before one is reserved.
inline constexpr int kForwardProbes = 16;
// Other programs may take ports between a look and a start; so often in one attempt is a fault of
// another kind.
inline constexpr int kForwardMoves = 8;
// An interface's name (Linux: IFNAMSIZ without its end).
inline constexpr std::size_t kBridgeBytes = 15;
inline constexpr std::size_t kNetworkBytes = 63;
// Networks that one host offers.
inline constexpr std::size_t kHostNetworks = 64;
// Addresses shown of one VM; a guest may claim any number.
inline constexpr std::size_t kVmAddresses = 16;

}  // namespace vmonce::model::limits
