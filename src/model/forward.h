// Ways into a VM in user-mode networking: a port of its host that leads to a port of the guest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/ids.h"

namespace vmonce::model {

enum class Protocol { kTcp, kUdp };
std::string_view ToString(Protocol protocol);  // "tcp", "udp"
std::optional<Protocol> ParseProtocol(std::string_view text);

// What is asked for: host_port 0 leaves the choice to us.
// What is reserved: host_port and host_address say where the host listens.
struct Forward {
  int guest_port = 0;
  Protocol protocol = Protocol::kTcp;
  int host_port = 0;
  std::string host_address;  // Empty in what is asked for.

  bool operator==(const Forward&) const = default;
};

// One port of a host. Reservations are by protocol and port alone, so that a changed address
// cannot make two VMs meet.
struct HostPort {
  Protocol protocol = Protocol::kTcp;
  int port = 0;

  auto operator<=>(const HostPort&) const = default;
};

// The ports of a host that forwards may use, both ends included.
struct PortRange {
  int first = 0;
  int last = -1;

  int Size() const { return last - first + 1; }
  bool Contains(int port) const { return port >= first && port <= last; }
  bool operator==(const PortRange&) const = default;
};

// "20000-29999"; std::nullopt unless both are ports from limits::kHostPortMin up, in order.
std::optional<PortRange> ParsePortRange(std::string_view text);

// The port that a VM tries as its `turn`-th (from 0, below the range's size); over all turns each
// port of the range once. VMs begin at different places, so that a port that was given back is not
// the next one's at once.
int PortAt(const PortRange& range, const VmId& vm, int turn);

}  // namespace vmonce::model
