// How calls share connections, on libvirt's test driver and on a real daemon.
#include <gtest/gtest.h>

#include "hypervisor/driver_contract_beds.h"
#include "hypervisor/host_uri.h"
#include "hypervisor/libvirt_sessions.h"
#include "hypervisor/private_libvirtd.h"

namespace vmonce::hypervisor {
namespace {

struct Sessions : testing::Test {
  std::unique_ptr<LibvirtSessions> Connected(const std::string& uri, const std::string& pool) {
    auto parsed = ParseHostUri(uri);
    EXPECT_TRUE(parsed);
    auto sessions =
        std::make_unique<LibvirtSessions>(LibvirtOptions{.uri = *parsed,
                                                         .accelerator = Accelerator::kTcg,
                                                         .pool = pool,
                                                         .pool_path = directory.path() + "/pool",
                                                         .scratch = directory.path(),
                                                         .events = TestEvents()},
                                          *clock, *threads, *logger);
    const auto facts = sessions->Connect(TestMarker(), ports::MarkerPolicy::kWriteIfNone);
    EXPECT_TRUE(facts) << facts.error().detail;
    return sessions;
  }

  const std::unique_ptr<Clock> clock = NewSystemClock();
  const std::unique_ptr<Threads> threads = NewSystemThreads();
  const std::unique_ptr<Logger> logger = NewNullLogger();
  const TempDir directory;
};

TEST_F(Sessions, AreTheirOwnForEachCallToADaemonAndKeptForTheNext) {
  const PrivateLibvirtd daemon;
  const auto sessions = Connected(daemon.RemoteUri(), "vmonce");
  auto first = sessions->Take();
  auto second = sessions->Take();
  ASSERT_TRUE(first && second);
  const virConnectPtr mine = (*first)->connection();
  EXPECT_NE(mine, (*second)->connection());
  first->reset();
  const auto third = sessions->Take();
  ASSERT_TRUE(third);
  EXPECT_EQ((*third)->connection(), mine);
}

TEST_F(Sessions, AreOneWithWhatRunsInThisProcess) {
  const auto sessions = Connected("test:///default", "default-pool");
  const auto first = sessions->Take();
  const auto second = sessions->Take();
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->connection(), (*second)->connection());
}

TEST_F(Sessions, AreNotGivenAfterAnotherMarkerWasAskedFor) {
  const auto sessions = Connected("test:///default", "default-pool");
  const model::HostMarker other{.ledger = {"ba9876543210"}, .host = {"one"}};
  ASSERT_FALSE(sessions->Connect(other, ports::MarkerPolicy::kRequire));
  const auto taken = sessions->Take();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(sessions->Connect(TestMarker(), ports::MarkerPolicy::kRequire));
  EXPECT_TRUE(sessions->Take());
}

}  // namespace
}  // namespace vmonce::hypervisor
