#include "model/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace vmonce::model {
namespace {

Candidate HostWith(std::string id, std::int64_t memory_mib, std::int64_t reserved_mib) {
  Candidate candidate;
  candidate.host.id = HostId{std::move(id)};
  candidate.host.capacity = {.vms = 10, .cpus = 16, .memory_mib = memory_mib, .disk_gib = 100};
  candidate.host.reserved = {.vms = 1, .cpus = 1, .memory_mib = reserved_mib, .disk_gib = 1};
  candidate.is_reachable = true;
  return candidate;
}

const Resources kDemand{.vms = 1, .cpus = 1, .memory_mib = 100, .disk_gib = 1};

std::string Picked(const std::vector<Candidate>& candidates, const Resources& demand = kDemand) {
  const auto host = PickHost(candidates, demand);
  return host ? host->value : "none";
}

TEST(Placement, FindsNothingAmongNoHosts) { EXPECT_EQ(Picked({}), "none"); }

TEST(Placement, PicksTheLargestFreeShareOfMemory) {
  EXPECT_EQ(Picked({HostWith("a", 1000, 500), HostWith("b", 1000, 400)}), "b");
  // The share counts, not the amount: 7 of 10 are more than 60 of 100.
  EXPECT_EQ(Picked({HostWith("big", 10'000, 3'900), HostWith("small", 1'000, 200)}), "small");
}

TEST(Placement, CountsTheShareThatIsLeftAfterPlacing) {
  // Before placing, "small" has the larger share (60 % against 55 %); after it, 50 against 54.
  EXPECT_EQ(Picked({HostWith("big", 10'000, 4'500), HostWith("small", 1'000, 400)}), "big");
}

TEST(Placement, PassesOverAHostThatReturnsFromTheDead) {
  Candidate returning = HostWith("a", 1000, 0);
  returning.host.is_returning = true;
  EXPECT_EQ(Picked({returning}), "none");
  EXPECT_EQ(Picked({returning, HostWith("b", 1000, 800)}), "b");
}

TEST(Placement, SettlesTiesByTheSmallerIdInAnyOrder) {
  EXPECT_EQ(Picked({HostWith("b", 1000, 400), HostWith("a", 1000, 400)}), "a");
  EXPECT_EQ(Picked({HostWith("a", 1000, 400), HostWith("b", 1000, 400)}), "a");
  // Equal shares of different sizes: (3000 - 900 - 100) / 3000 = (1500 - 400 - 100) / 1500.
  EXPECT_EQ(Picked({HostWith("b", 3000, 900), HostWith("a", 1500, 400)}), "a");
}

TEST(Placement, TellsSharesApartThatRoundToTheSame) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  EXPECT_EQ(Picked({HostWith("a", kHuge, 1001), HostWith("b", kHuge, 1000)}), "b");
}

TEST(Placement, LeavesOutHostsThatAreNotActive) {
  for (const HostState state : {HostState::kDraining, HostState::kDead}) {
    Candidate candidate = HostWith("a", 1000, 0);
    candidate.host.state = state;
    EXPECT_EQ(Picked({candidate}), "none") << ToString(state);
    EXPECT_EQ(Picked({candidate, HostWith("b", 1000, 900)}), "b") << ToString(state);
  }
}

TEST(Placement, LeavesOutHostsThatDoNotAnswer) {
  Candidate candidate = HostWith("a", 1000, 0);
  candidate.is_reachable = false;
  EXPECT_EQ(Picked({candidate}), "none");
}

TEST(Placement, NeedsRoomForEveryAmount) {
  const Candidate candidate = HostWith("a", 1000, 900);
  const Resources most = candidate.host.capacity - candidate.host.reserved;
  EXPECT_EQ(Picked({candidate}, most), "a") << "the last bit of room can be used";
  EXPECT_EQ(Picked({candidate}, most + Resources{.vms = 1}), "none");
  EXPECT_EQ(Picked({candidate}, most + Resources{.cpus = 1}), "none");
  EXPECT_EQ(Picked({candidate}, most + Resources{.memory_mib = 1}), "none");
  EXPECT_EQ(Picked({candidate}, most + Resources{.disk_gib = 1}), "none");
}

TEST(Placement, UsesNoHostWhoseCapacityWasCutBelowItsReservations) {
  EXPECT_EQ(Picked({HostWith("a", 1000, 1200)}), "none");
}

TEST(Placement, DoesNotDependOnTheOrderOfHosts) {
  std::mt19937_64 chance(20240602);
  for (int round = 0; round < 100; ++round) {
    std::vector<Candidate> candidates;
    for (int i = 0; i < 6; ++i) {
      const auto memory = static_cast<std::int64_t>(100 * (1 + chance() % 4));
      const auto reserved = static_cast<std::int64_t>(50 * (chance() % 4));
      candidates.push_back(HostWith("h" + std::to_string(i), memory, reserved));
    }
    const std::string first = Picked(candidates);
    for (int shuffle = 0; shuffle < 5; ++shuffle) {
      std::ranges::shuffle(candidates, chance);
      EXPECT_EQ(Picked(candidates), first);
    }
  }
}

}  // namespace
}  // namespace vmonce::model
