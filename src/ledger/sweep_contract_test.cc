#include "ledger/contract_world.h"

namespace vmonce::ledger {
namespace {

using std::chrono::hours;

constexpr int kMost = 100;

class Sweeps : public LedgerContract {
 protected:
  int Sweep(int most = kMost) {
    const auto counts = world.ledger->Sweep(policy, most);
    EXPECT_TRUE(counts.has_value());
    return counts ? counts->expired : -1;
  }
  // A VM that was created with `key` and deleted.
  model::Vm DeletedVm(const std::string& key, const std::string& name) {
    const auto vm = world.NewVm(key, name);
    world.MakeReady();
    world.MustAccept(world.Delete("", vm.id));
    world.MakeDeleted();
    return vm;
  }
  bool IsTombstone(const std::string& key) {
    const auto found = world.ledger->FindByKey(world.project, Sha256(key));
    return found && *found && std::holds_alternative<ports::KnownTombstone>(**found);
  }

  model::RetentionPolicy policy;
};
INSTANTIATE_TEST_SUITE_P(Sweep, Sweeps, AllAdapters(), AdapterName);

// report 53, report 55
TEST_P(Sweeps, KeepARecordAsLongAsItsVmLives) {
  const auto vm = world.NewVm("key-1", "a");
  world.MakeReady();
  world.clock.Advance(hours(24 * 400));
  EXPECT_EQ(Sweep(), 0);
  const auto again = world.Accept(world.Create("key-1", {"a"}));
  ASSERT_NE(As<ports::Known>(again), nullptr);
  EXPECT_EQ(As<ports::Known>(again)->vms.front().id, vm.id);
}

TEST_P(Sweeps, NeverExpireWhatIsUnfinished) {
  world.NewVm("key-1", "a");
  world.clock.Advance(hours(24 * 400));
  EXPECT_EQ(Sweep(), 0);
  EXPECT_EQ(world.Take().size(), 1u);
}

TEST_P(Sweeps, TurnARecordIntoATombstoneOnceItsVmIsLongGone) {
  const Time first_seen = world.clock.Now();
  const auto vm = DeletedVm("key-1", "a");
  world.clock.Advance(policy.retention - Milliseconds(1));
  EXPECT_EQ(Sweep(), 0);
  world.clock.Advance(Milliseconds(1));
  EXPECT_EQ(Sweep(), 2);  // The create, and the delete without a key.
  EXPECT_EQ(Sweep(), 0);

  const auto outcome = world.Accept(world.Create("key-1", {"b"}));
  const auto* known = As<ports::KnownTombstone>(outcome);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->tombstone.vms, std::vector<model::VmId>{vm.id});
  EXPECT_EQ(known->tombstone.fingerprint, Sha256("fingerprint of key-1"));
  EXPECT_EQ(known->tombstone.final_state, model::OperationState::kSucceeded);
  EXPECT_EQ(known->tombstone.first_seen, first_seen);
  EXPECT_EQ(known->tombstone.expires, world.clock.Now() + policy.tombstone_retention);
  EXPECT_FALSE(world.ledger->GetVm(vm.id)->has_value());
  EXPECT_FALSE(world.ledger->GetOperation(vm.operation)->has_value());
  EXPECT_TRUE(world.ledger->Timeline(vm.operation)->empty());
  EXPECT_EQ(world.ledger->InTombstones(std::span(&vm.id, 1)).value(),
            std::vector<model::VmId>{vm.id});
  EXPECT_EQ(world.ledger->Totals()->operations_in_state.at("succeeded"), 0);
}

TEST_P(Sweeps, DropATombstoneWhenItsTimeIsOver) {
  const auto vm = DeletedVm("key-1", "a");
  world.clock.Advance(policy.retention);
  Sweep();
  world.clock.Advance(policy.tombstone_retention);
  const auto counts = world.ledger->Sweep(policy, kMost);
  EXPECT_EQ(counts->tombstones_dropped, 1);
  EXPECT_TRUE(world.ledger->InTombstones(std::span(&vm.id, 1))->empty());
  EXPECT_NE(As<ports::Accepted>(world.Accept(world.Create("key-1", {"a"}))), nullptr);
}

TEST_P(Sweeps, LetRecordsWithoutAResourceGoAfterTheKeysTime) {
  const auto vm = world.NewVm("key-1", "a");
  world.MakeReady();
  world.MustAccept(world.Rename("key-u", vm.id, "b"));
  world.clock.Advance(policy.key_ttl);
  EXPECT_EQ(Sweep(), 1);
  EXPECT_TRUE(IsTombstone("key-u"));
  EXPECT_FALSE(IsTombstone("key-1"));
  // Its tombstone names the VM, and says nothing of its life.
  EXPECT_TRUE(world.ledger->InTombstones(std::span(&vm.id, 1))->empty());
  EXPECT_TRUE(world.ledger->GetVm(vm.id)->has_value());
}

TEST_P(Sweeps, KeepABatchUntilTheLastOfItsVmsIsGone) {
  const auto outcome = world.Accept(world.Create("key-1", {"x-0", "x-1"}));
  const auto vms = As<ports::Accepted>(outcome)->vms;
  world.MakeReady();
  world.MustAccept(world.Delete("", vms[0].id));
  world.MakeDeleted();
  world.clock.Advance(policy.retention * 2);
  EXPECT_EQ(Sweep(), 1);  // The delete.
  world.MustAccept(world.Delete("", vms[1].id));
  world.MakeDeleted();
  world.clock.Advance(policy.retention);
  EXPECT_EQ(Sweep(), 2);
  EXPECT_TRUE(IsTombstone("key-1"));
}

TEST_P(Sweeps, LetAFailedCreateGoThatNobodyTriedAgain) {
  const auto vm = world.NewVm("key-1", "a");
  world.MakeFailed(true);
  world.clock.Advance(policy.retention - Milliseconds(1));
  EXPECT_EQ(Sweep(), 0);
  world.clock.Advance(Milliseconds(1));
  EXPECT_EQ(Sweep(), 1);
  EXPECT_TRUE(IsTombstone("key-1"));
  EXPECT_FALSE(world.ledger->GetVm(vm.id)->has_value());
}

TEST_P(Sweeps, DoABoundedAmountAndGetThroughAllTheSame) {
  // Batches that must stay, older than everything that may go.
  for (int i = 0; i < 5; ++i) {
    const auto key = fmt::format("stays-{}", i);
    const auto outcome = world.Accept(world.Create(key, {key + "-0", key + "-1"}));
    world.MakeReady();
    world.MustAccept(world.Delete("", As<ports::Accepted>(outcome)->vms[0].id));
    world.MakeDeleted();
  }
  for (int i = 0; i < 5; ++i) DeletedVm(fmt::format("goes-{}", i), fmt::format("goes-{}", i));
  world.clock.Advance(policy.retention);
  int expired = 0;
  for (int sweep = 0; sweep < 30; ++sweep) {
    const int now = Sweep(2);
    EXPECT_LE(now, 2);
    expired += now;
  }
  EXPECT_EQ(expired, 5 + 10);  // The creates, and all deletes.
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(IsTombstone(fmt::format("goes-{}", i)));
    EXPECT_FALSE(IsTombstone(fmt::format("stays-{}", i)));
  }
}

TEST_P(Sweeps, DropEventsThatNobodyTook) {
  auto submission = world.Create("key-1", {"a"});
  submission.events.resize(3);
  world.MustAccept(submission);
  world.clock.Advance(policy.outbox_retention);
  auto later = world.Create("key-2", {"b"});
  later.events.resize(1);
  world.MustAccept(later);
  EXPECT_EQ(world.ledger->Sweep(policy, 2)->events_dropped, 2);
  EXPECT_EQ(world.ledger->Sweep(policy, 2)->events_dropped, 1);
  EXPECT_EQ(world.ledger->Sweep(policy, 2)->events_dropped, 0);
  EXPECT_EQ(world.ledger->Totals()->outbox, 1);
}

TEST_P(Sweeps, NeverLetASequenceNumberComeTwice) {
  DeletedVm("key-1", "a");
  world.clock.Advance(policy.retention);
  EXPECT_EQ(Sweep(), 2);
  EXPECT_EQ(world.Operation(world.NewVm("key-2", "b").operation).sequence, 3);
}

}  // namespace
}  // namespace vmonce::ledger
