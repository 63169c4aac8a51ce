#include "hypervisor/port_probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace vmonce::hypervisor {
namespace {

using model::Protocol;

// A stranger's program: listens, or is bound, on a free port of `address`.
struct Stranger {
  Stranger(Protocol protocol, const char* address)
      : fd(socket(AF_INET, protocol == Protocol::kTcp ? SOCK_STREAM : SOCK_DGRAM, 0)),
        port{protocol, 0} {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    inet_pton(AF_INET, address, &at.sin_addr);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    if (protocol == Protocol::kTcp) EXPECT_EQ(listen(fd.get(), 1), 0);
    EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    port.port = ntohs(at.sin_port);
  }
  UniqueFd fd;
  model::HostPort port;
};

TEST(PortProbe, SeesWhoListensThereOrEverywhere) {
  for (const Protocol protocol : {Protocol::kTcp, Protocol::kUdp}) {
    for (const char* address : {"127.0.0.1", "0.0.0.0"}) {
      const Stranger stranger(protocol, address);
      EXPECT_TRUE(IsPortInUse("127.0.0.1", stranger.port)) << ToString(protocol) << address;
      EXPECT_TRUE(IsPortInUse("0.0.0.0", stranger.port)) << ToString(protocol) << address;
    }
  }
}

TEST(PortProbe, AFreePortIsFreeAndStaysSo) {
  model::HostPort port;
  {
    const Stranger stranger(Protocol::kTcp, "127.0.0.1");
    port = stranger.port;
  }
  EXPECT_FALSE(IsPortInUse("127.0.0.1", port));
  EXPECT_FALSE(IsPortInUse("127.0.0.1", port));
}

TEST(PortProbe, AnAddressOfAnotherMachineIsNoPortInUse) {
  EXPECT_FALSE(IsPortInUse("192.0.2.1", {Protocol::kTcp, 20'000}));
  EXPECT_FALSE(IsPortInUse("no address", {Protocol::kTcp, 20'000}));
}

}  // namespace
}  // namespace vmonce::hypervisor
