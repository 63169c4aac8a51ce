#include "hypervisor/port_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace vmonce::hypervisor {

bool IsPortInUse(const std::string& address, const model::HostPort& port) {
  const bool is_tcp = port.protocol == model::Protocol::kTcp;
  const UniqueFd probe(socket(AF_INET, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port.port));
  if (!probe.IsOpen() || inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return false;
  // Connections that have ended do not keep QEMU from listening. A datagram port that is shared
  // would be: two programs would each get some of its traffic.
  const int reuse = is_tcp ? 1 : 0;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
         errno == EADDRINUSE;
}

}  // namespace vmonce::hypervisor
