#include "base/port_probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace vmonce {
namespace {

// A stranger's program: listens, or is bound, on a free port of `address`.
struct Stranger {
  Stranger(int type, const char* address) : fd(socket(AF_INET, type, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    inet_pton(AF_INET, address, &at.sin_addr);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(listen(fd.get(), 1), 0);
    }
    EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    port = ntohs(at.sin_port);
  }
  UniqueFd fd;
  std::uint16_t port = 0;
};

TEST(PortProbe, SeesWhoListensThereOrEverywhere) {
  for (const char* address : {"127.0.0.1", "0.0.0.0"}) {
    const Stranger tcp(SOCK_STREAM, address);
    EXPECT_TRUE(IsTcpPortInUse("127.0.0.1", tcp.port)) << address;
    EXPECT_TRUE(IsTcpPortInUse("0.0.0.0", tcp.port)) << address;
    const Stranger udp(SOCK_DGRAM, address);
    EXPECT_TRUE(IsUdpPortInUse("127.0.0.1", udp.port)) << address;
    EXPECT_TRUE(IsUdpPortInUse("0.0.0.0", udp.port)) << address;
  }
}

TEST(PortProbe, AFreePortIsFreeAndStaysSo) {
  std::uint16_t port = 0;
  {
    const Stranger stranger(SOCK_STREAM, "127.0.0.1");
    port = stranger.port;
  }
  EXPECT_FALSE(IsTcpPortInUse("127.0.0.1", port));
  EXPECT_FALSE(IsTcpPortInUse("127.0.0.1", port));
}

TEST(PortProbe, AnAddressOfAnotherMachineIsNoPortInUse) {
  EXPECT_FALSE(IsTcpPortInUse("192.0.2.1", 20'000));
  EXPECT_FALSE(IsUdpPortInUse("no address", 20'000));
}

TEST(PortProbe, KnowsAnIpv4Address) {
  EXPECT_TRUE(IsIpv4Address("127.0.0.1"));
  for (const char* text : {"", "localhost", "::1", "1.2.3", "1.2.3.4.5", "256.0.0.1"}) {
    EXPECT_FALSE(IsIpv4Address(text)) << text;
  }
}

}  // namespace
}  // namespace vmonce
