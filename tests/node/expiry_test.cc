// What is left of records and reservations in the end, over a whole node.
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using model::OperationState;
using model::VmState;
using std::chrono::hours;
using Kind = service::ChangeRequest::Kind;

constexpr hours kDay{24};

Fault Refused() {
  Fault fault;
  fault.instead = Error{ErrorCode::kRefused, "made up"};
  return fault;
}

model::Resources Used(World& world) { return *world.ledger().Usage(model::ProjectId{"default"}); }

// report 56: that a key has expired is told by another code than that it was used for another
// request, and names what it made.
TEST(Expiry, IsToldFromAMismatchAndNamesTheVm) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet();
  world.Advance(40 * kDay);
  world.SweepLedger();
  const service::Outcome expired = world.Create("key-1", "web");
  ASSERT_FALSE(expired.has_value());
  EXPECT_EQ(expired.error().code, "idempotency_key_expired");
  EXPECT_EQ(model::KindOf(expired.error().code).status, 410);
  EXPECT_EQ(expired.error().vm, id);
  const service::Outcome other = world.Create("key-1", "another");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, "idempotency_key_reused");
  EXPECT_EQ(model::KindOf(other.error().code).status, 422);
  EXPECT_TRUE(world.host().Domains().empty());
}

// report 53: as long as the VM lives, its key answers with it; long after its deletion, with 410.
TEST(Expiry, AKeyLivesAsLongAsItsVmAndIsNeverSilentlyForgotten) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  world.Advance(31 * kDay);
  world.SweepLedger();
  const service::Outcome late = world.Create("key-1", "web");
  ASSERT_TRUE(late.has_value());
  EXPECT_TRUE(late->is_replay);
  EXPECT_EQ(late->vms.front().id, id);
  EXPECT_EQ(late->vms.front().state, VmState::kReady);

  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet();
  world.Advance(29 * kDay);
  world.SweepLedger();
  EXPECT_EQ(world.Create("key-1", "web")->vms.front().state, VmState::kDeleted);
  world.Advance(11 * kDay);
  world.SweepLedger();
  const service::Outcome expired = world.Create("key-1", "web");
  ASSERT_FALSE(expired.has_value());
  EXPECT_EQ(expired.error().code, "idempotency_key_expired");
  EXPECT_EQ(expired.error().vm, id);
  EXPECT_TRUE(world.host().Domains().empty());
  EXPECT_EQ(world.Audit(), "");
}

TEST(Expiry, AFailedVmWithoutEffectsExpiresAfterTheRetention) {
  World world;
  world.faults().Add(SimulatedCall::kDefine, Refused());
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  ASSERT_EQ(world.VmRow(id).state, VmState::kFailed);
  world.Advance(29 * kDay);
  EXPECT_EQ(world.SweepLedger().expired, 0);
  EXPECT_EQ(world.Create("key-1", "web").error().code, "hypervisor_refused");
  world.Advance(2 * kDay);
  EXPECT_EQ(world.SweepLedger().expired, 1);
  EXPECT_FALSE(world.ledger().GetVm(id)->has_value());
  const service::Outcome expired = world.Create("key-1", "web");
  ASSERT_FALSE(expired.has_value());
  EXPECT_EQ(expired.error().code, "idempotency_key_expired");
}

TEST(Expiry, ABatchWithALivingVmKeepsItsFailedOnes) {
  World world;
  world.faults().Add(SimulatedCall::kDefine, Refused());
  const service::Outcome created = world.Create("key-1", "web", 2);
  world.RunUntilQuiet();
  world.Advance(400 * kDay);
  EXPECT_EQ(world.SweepLedger().expired, 0);
  EXPECT_EQ(world.ledger().VmsOf(created->operation->id)->size(), 2u);
}

// report 127
TEST(Quota, FiftyFailingCreatesUseNothing) {
  World world;
  world.faults().Add(SimulatedCall::kStart, Refused(), 50);
  for (int i = 0; i < 50; ++i) {
    const std::string name = "web-" + std::to_string(i);
    ASSERT_TRUE(world.Create("key-" + name, name).has_value());
  }
  EXPECT_EQ(Used(world).vms, 50);
  world.RunUntilQuiet();
  EXPECT_EQ(world.faults().fired(), 50);
  EXPECT_EQ(Used(world), model::Resources{});
  EXPECT_EQ(world.Audit(), "");
}

// report 128: one reservation, given back whole, whichever step fails and however.
TEST(Quota, ACreateThatFailsAtAnyStepUsesNothing) {
  for (const SimulatedCall call : {SimulatedCall::kCreateDisk, SimulatedCall::kCreateSeed,
                                   SimulatedCall::kDefine, SimulatedCall::kStart}) {
    for (const ErrorCode code :
         {ErrorCode::kRefused, ErrorCode::kUnavailable, ErrorCode::kUnknown}) {
      World world;
      Fault fault;
      fault.instead = Error{code, "made up"};
      world.faults().Add(call, fault, 1'000);
      const service::Outcome created = world.Create("key-1", "web");
      world.RunUntilQuiet(Milliseconds(3'600'000));
      EXPECT_EQ(world.OperationRow(created->operation->id).state, OperationState::kFailed)
          << ToString(call);
      EXPECT_EQ(Used(world), model::Resources{}) << ToString(call);
      EXPECT_EQ(world.ledger().Hosts()->front().reserved, model::Resources{}) << ToString(call);
      EXPECT_EQ(world.Audit(), "") << ToString(call);
      // The name is free as well.
      world.faults().Clear();
      EXPECT_TRUE(world.Create("key-2", "web").has_value()) << ToString(call);
    }
  }
  World full;
  full.SetQuota({.vms = 0, .cpus = 0, .memory_mib = 0, .disk_gib = 0});
  EXPECT_EQ(full.Create("key-1", "web").error().code, "quota_exceeded");
  EXPECT_EQ(Used(full), model::Resources{});
}

}  // namespace
}  // namespace vmonce::node
