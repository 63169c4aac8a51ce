#include "hypervisor/host_uri.h"

#include <gtest/gtest.h>

#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

TEST(HostUri, KnowsEachKind) {
  const std::vector<std::pair<const char*, HostKind>> known{
      {"simulated:", HostKind::kSimulated},
      {"simulated:/var/lib/x", HostKind::kSimulated},
      {"test:///default", HostKind::kTest},
      {"qemu:///embed?root=/var/lib/vmonce", HostKind::kEmbedded},
      {"qemu:///system", HostKind::kLocalDaemon},
      {"qemu:///session", HostKind::kLocalDaemon},
      {"qemu+unix:///system?socket=/run/x.sock", HostKind::kLocalDaemon},
      {"qemu+ssh://root@host.example/system", HostKind::kRemoteDaemon},
      {"qemu+tls://host.example/system", HostKind::kRemoteDaemon},
      {"qemu://host.example/system", HostKind::kRemoteDaemon},
  };
  for (const auto& [uri, kind] : known) {
    auto parsed = ParseHostUri(uri);
    ASSERT_TRUE(parsed) << uri << ": " << parsed.error().detail;
    EXPECT_EQ(parsed->kind, kind) << uri;
  }
}

TEST(HostUri, RefusesEverythingElse) {
  for (const char* uri :
       {"", "qemu", "xen:///system", "qemu:///", "qemu:///other", "qemu:///embed",
        "qemu:///embed?root=", "qemu:///embed?root=relative", "qemu:///embed?root=/",
        "qemu:///embed?root=/a/../b", "qemu:///embed?root=/a b", "qemu:///embed?root=/a&x=y",
        "qemu://host/embed?root=/a", "qemu+ssh:///system", "qemu+smoke://host/system",
        "simulated:relative"}) {
    auto parsed = ParseHostUri(uri);
    ASSERT_FALSE(parsed) << uri;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid) << uri;
  }
}

TEST(HostUri, NeverLetsSshAskOnOurTerminal) {
  EXPECT_EQ(ParseHostUri("qemu+ssh://h/system")->uri, "qemu+ssh://h/system?no_tty=1");
  EXPECT_EQ(ParseHostUri("qemu+ssh://h/system?keyfile=/k")->uri,
            "qemu+ssh://h/system?keyfile=/k&no_tty=1");
}

TEST(HostUri, RefusesARootWhoseSocketsWouldBeTooLong) {
  const std::string longest = "/" + std::string(model::limits::kEmbedRootBytes - 1, 'r');
  EXPECT_TRUE(ParseHostUri("qemu:///embed?root=" + longest));
  EXPECT_TRUE(ParseHostUri("qemu:///embed?root=" + longest + "/"));
  EXPECT_FALSE(ParseHostUri("qemu:///embed?root=" + longest + "r"));
  // The longest name that libvirt makes beneath a root, with a six-digit domain id.
  const std::string socket =
      longest + "/lib/qemu/domain-999999-" + std::string(20, 'n') + "/monitor.sock";
  EXPECT_LE(socket.size(), 107u);
}

TEST(HostUri, SettlesLongerTheFartherTheHypervisorIs) {
  EXPECT_EQ(DefaultSettleTime(HostKind::kEmbedded).count(), 0);
  EXPECT_LT(DefaultSettleTime(HostKind::kLocalDaemon), DefaultSettleTime(HostKind::kRemoteDaemon));
}

}  // namespace
}  // namespace vmonce::hypervisor
