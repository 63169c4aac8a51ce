// What a project holds of its quota, when its creates fail.
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::SimulatedCall;

const model::ProjectId kProject{"default"};

model::Resources Used(World& world) { return world.ledger().Usage(kProject).value(); }

model::Resources ReservedOnTheHost(World& world) {
  return world.ledger().Hosts().value().front().reserved;
}

hypervisor::Fault Refusal() {
  hypervisor::Fault fault;
  fault.instead = Error{ErrorCode::kRefused, "no such machine type"};
  return fault;
}

// report 127
TEST(Quota, FiftyFailingCreatesLeaveNothingUsed) {
  World world({.quota = {.vms = 1, .cpus = 1, .memory_mib = 1'024, .disk_gib = 10}});
  world.faults().Add(SimulatedCall::kStart, Refusal(), 50);
  for (int i = 0; i < 50; ++i) {
    const std::string number = std::to_string(i);
    // Each needs the whole quota: one that was not given back would stop the next.
    ASSERT_TRUE(world.Create("key-" + number, "web").has_value()) << number;
    world.RunUntilQuiet();
    ASSERT_EQ(Used(world), model::Resources{}) << number;
  }
  EXPECT_EQ(world.faults().fired(), 50);
  ASSERT_TRUE(world.Create("key-50", "web").has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(Used(world).vms, 1);
  EXPECT_EQ(world.Audit(), "");
}

// report 128
TEST(Quota, AFailureAtAnyStepGivesEveryAmountBackOnBothBooks) {
  for (const SimulatedCall call : {SimulatedCall::kCreateDisk, SimulatedCall::kCreateSeed,
                                   SimulatedCall::kDefine, SimulatedCall::kStart}) {
    World world;
    world.faults().Add(call, Refusal());
    ASSERT_TRUE(world.Create("key-1", "web").has_value());
    EXPECT_EQ(Used(world).vms, 1);
    world.RunUntilQuiet();
    EXPECT_EQ(world.faults().fired(), 1) << ToString(call);
    EXPECT_EQ(Used(world), model::Resources{}) << ToString(call);
    EXPECT_EQ(ReservedOnTheHost(world), model::Resources{}) << ToString(call);
  }
}

}  // namespace
}  // namespace vmonce::node
