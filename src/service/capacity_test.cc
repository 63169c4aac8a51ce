#include "service/capacity.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "base/system.h"
#include "engine/fake_ledger.h"

namespace vmonce::service {
namespace {

model::Host HostOf(const std::string& id, model::HostState state) {
  model::Host host;
  host.id = {id};
  host.state = state;
  host.capacity = {.vms = 10, .cpus = 10, .memory_mib = 10, .disk_gib = 10};
  host.reserved = {.vms = 3, .cpus = 2, .memory_mib = 1, .disk_gib = 0};
  return host;
}

struct Rig {
  FakeClock clock;
  std::unique_ptr<Threads> threads = NewSystemThreads();
  engine::FakeLedger ledger{clock, *threads};
  Capacity capacity{ledger, clock, *threads, Milliseconds(1'000)};
};

TEST(Capacity, CountsActiveHostsWholeAndOthersByWhatTheyHold) {
  Rig rig;
  rig.ledger.hosts = {HostOf("a", model::HostState::kActive),
                      HostOf("b", model::HostState::kDraining),
                      HostOf("c", model::HostState::kDead)};
  EXPECT_EQ(rig.capacity.Total(),
            (model::Resources{.vms = 16, .cpus = 14, .memory_mib = 12, .disk_gib = 10}));
}

TEST(Capacity, IsNothingWithoutHosts) {
  Rig rig;
  EXPECT_EQ(rig.capacity.Total(), model::Resources{});
}

TEST(Capacity, IsReadAgainWhenItIsRefreshedHoweverYoungItIs) {
  Rig rig;
  rig.ledger.hosts = {HostOf("a", model::HostState::kActive)};
  EXPECT_EQ(rig.capacity.Total()->vms, 10);
  rig.ledger.hosts.push_back(HostOf("b", model::HostState::kActive));
  EXPECT_EQ(rig.capacity.Total()->vms, 10);
  EXPECT_EQ(rig.capacity.Refresh()->vms, 20);
  EXPECT_EQ(rig.capacity.Total()->vms, 20);
}

TEST(Capacity, SeesTheFirstHostAtOnce) {
  Rig rig;
  EXPECT_EQ(rig.capacity.Total()->vms, 0);
  rig.ledger.hosts = {HostOf("a", model::HostState::kActive)};
  EXPECT_EQ(rig.capacity.Total()->vms, 10);
}

TEST(Capacity, ReadsAgainWhenItsFigureIsTooOld) {
  Rig rig;
  rig.ledger.hosts = {HostOf("a", model::HostState::kActive)};
  EXPECT_EQ(rig.capacity.Total()->vms, 10);
  rig.ledger.hosts.push_back(HostOf("b", model::HostState::kActive));
  rig.clock.Advance(Milliseconds(999));
  EXPECT_EQ(rig.capacity.Total()->vms, 10);
  EXPECT_EQ(rig.ledger.Calls("Hosts"), 1);
  rig.clock.Advance(Milliseconds(1));
  EXPECT_EQ(rig.capacity.Total()->vms, 20);
}

TEST(Capacity, NeverAnswersAnOldFigureWhenTheLedgerFails) {
  Rig rig;
  rig.ledger.hosts = {HostOf("a", model::HostState::kActive)};
  ASSERT_TRUE(rig.capacity.Total().has_value());
  rig.clock.Advance(Milliseconds(1'000));
  rig.ledger.before = [](std::string_view) { return Error{ErrorCode::kUnavailable, "down"}; };
  EXPECT_EQ(rig.capacity.Total().error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace vmonce::service
