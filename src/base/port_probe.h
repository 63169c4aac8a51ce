// Whether a port of this machine is free to listen on. Addresses are IPv4, dotted.
#pragma once

#include <cstdint>
#include <string>

namespace vmonce {

bool IsIpv4Address(const std::string& text);

// Try to bind, and let go at once. Only "address in use" is a yes: what else may stand in the way
// of listening there is nothing that another port would mend.
bool IsTcpPortInUse(const std::string& address, std::uint16_t port);
bool IsUdpPortInUse(const std::string& address, std::uint16_t port);

}  // namespace vmonce
