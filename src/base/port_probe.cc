#include "base/port_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace vmonce {
namespace {

bool IsInUse(const std::string& address, std::uint16_t port, int type) {
  const UniqueFd probe(socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (!probe.IsOpen() || inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return false;
  // Connections that have ended do not keep anybody from listening. A datagram port that is shared
  // would be: two programs would each get some of its traffic.
  const int reuse = type == SOCK_STREAM ? 1 : 0;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
         errno == EADDRINUSE;
}

}  // namespace

bool IsIpv4Address(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool IsTcpPortInUse(const std::string& address, std::uint16_t port) {
  return IsInUse(address, port, SOCK_STREAM);
}

bool IsUdpPortInUse(const std::string& address, std::uint16_t port) {
  return IsInUse(address, port, SOCK_DGRAM);
}

}  // namespace vmonce
