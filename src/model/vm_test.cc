#include "model/vm.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace vmonce::model {
namespace {

using enum VmState;

constexpr std::array kAll = {kPending, kCreating, kReady, kFailed, kMissing, kDeleting, kDeleted};

// Written out apart from the implementation's table: a row leads to the columns marked x, in the
// order of kAll.
constexpr std::array<std::string_view, 7> kLegal = {
    "xx...x.",  // pending
    ".xxx.x.",  // creating
    "..x.xx.",  // ready
    ".x.x.x.",  // failed: a new attempt
    "..x.xx.",  // missing: found again, never created again
    ".....xx",  // deleting
    "......x",  // deleted: nothing leads back
};

TEST(Vm, MovesOnlyAlongTheLegalTransitions) {
  for (std::size_t from = 0; from < kAll.size(); ++from) {
    for (std::size_t to = 0; to < kAll.size(); ++to) {
      EXPECT_EQ(IsLegal(kAll[from], kAll[to]), kLegal[from][to] == 'x')
          << ToString(kAll[from]) << " to " << ToString(kAll[to]);
    }
  }
}

TEST(Vm, DemandsWhatItsSpecAsks) {
  VmSpec spec;
  spec.cpus = 3;
  spec.memory_mib = 2048;
  spec.disk_gib = 7;
  EXPECT_EQ(Demand(spec), (Resources{.vms = 1, .cpus = 3, .memory_mib = 2048, .disk_gib = 7}));
}

TEST(Vm, DemandsNoDiskBeyondItsImage) { EXPECT_EQ(Demand(VmSpec{}).disk_gib, 0); }

TEST(Resources, FitWhenEveryAmountFits) {
  const Resources limit{.vms = 2, .cpus = 2, .memory_mib = 2, .disk_gib = 2};
  EXPECT_TRUE(limit.FitsIn(limit));
  EXPECT_FALSE((limit + Resources{.vms = 1}).FitsIn(limit));
  EXPECT_FALSE((limit + Resources{.cpus = 1}).FitsIn(limit));
  EXPECT_FALSE((limit + Resources{.memory_mib = 1}).FitsIn(limit));
  EXPECT_FALSE((limit + Resources{.disk_gib = 1}).FitsIn(limit));
  EXPECT_EQ(limit + limit - limit, limit);
}

}  // namespace
}  // namespace vmonce::model
