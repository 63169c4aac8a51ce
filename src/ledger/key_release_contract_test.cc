// Keys that an operator takes off what is gone (report 49).
#include "ledger/contract_world.h"

namespace vmonce::ledger {
namespace {

using std::chrono::hours;

class KeyReleaseContract : public LedgerContract {
 protected:
  Result<ports::ReleasedKey> Release(const std::string& key) {
    return dynamic_cast<ports::KeyReleases&>(*world.ledger)
        .ReleaseKey(world.project, Sha256(key), "an operator");
  }
  bool IsKnown(const std::string& key) {
    const auto found = world.ledger->FindByKey(world.project, Sha256(key));
    return found && found->has_value();
  }
  model::Vm MadeAndDeleted(const std::string& key) {
    const auto vm = world.NewVm(key, "a");
    world.MakeReady();
    world.MustAccept(world.Delete("", vm.id));
    world.MakeDeleted();
    return vm;
  }
  void MakeTombstones() {
    world.clock.Advance(policy.retention);
    EXPECT_EQ(world.ledger->Sweep(policy, 100)->expired, 2);
  }

  model::RetentionPolicy policy;
};
INSTANTIATE_TEST_SUITE_P(Keys, KeyReleaseContract, AllAdapters(), AdapterName);

TEST_P(KeyReleaseContract, LetsAKeyMakeSomethingNewOnceItsVmIsDeleted) {
  const auto vm = MadeAndDeleted("key-1");
  const auto released = Release("key-1");
  ASSERT_TRUE(released) << released.error().detail;
  EXPECT_EQ(released->vms, std::vector<model::VmId>{vm.id});
  EXPECT_FALSE(IsKnown("key-1"));
  EXPECT_EQ(world.ledger->LiveKeys(world.project), 0);
  const auto told = world.ledger->Timeline(vm.operation);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->back().event, "key_released");
  EXPECT_EQ(told->back().detail, "an operator");
  EXPECT_NE(world.NewVm("key-1", "a").id, vm.id);
}

TEST_P(KeyReleaseContract, KeepsATombstoneKnownByItsVmsAlone) {
  const auto vm = MadeAndDeleted("key-1");
  MakeTombstones();
  const auto released = Release("key-1");
  ASSERT_TRUE(released) << released.error().detail;
  EXPECT_EQ(released->vms, std::vector<model::VmId>{vm.id});
  EXPECT_FALSE(IsKnown("key-1"));
  EXPECT_EQ(world.ledger->InTombstones(std::span(&vm.id, 1)).value(),
            std::vector<model::VmId>{vm.id});
  // What is made with it now ends as a tombstone of its own, beside the first.
  MadeAndDeleted("key-1");
  MakeTombstones();
  EXPECT_TRUE(IsKnown("key-1"));
  EXPECT_TRUE(Release("key-1"));
  world.clock.Advance(policy.tombstone_retention);
  EXPECT_EQ(world.ledger->Sweep(policy, 100)->tombstones_dropped, 2);
}

TEST_P(KeyReleaseContract, RefusesWhatIsUnfinishedAndWhatIsStillThere) {
  const auto vm = world.NewVm("key-1", "a");
  EXPECT_EQ(Release("key-1").error().code, ErrorCode::kConflict);
  world.MakeReady();
  EXPECT_EQ(Release("key-1").error().code, ErrorCode::kConflict);
  world.MustAccept(world.Delete("", vm.id));
  EXPECT_EQ(Release("key-1").error().code, ErrorCode::kConflict);
  EXPECT_TRUE(IsKnown("key-1"));
}

TEST_P(KeyReleaseContract, FindsNothingInAnotherProject) {
  MadeAndDeleted("key-1");
  EXPECT_EQ(Release("key-2").error().code, ErrorCode::kNotFound);
  world.project = model::ProjectId{"other"};
  EXPECT_EQ(Release("key-1").error().code, ErrorCode::kNotFound);
  world.project = model::ProjectId{"default"};
  EXPECT_TRUE(IsKnown("key-1"));
}

// A replay that was answered from memory is not answered so again.
TEST_P(KeyReleaseContract, TellsOfTheChange) {
  const auto vm = MadeAndDeleted("key-1");
  const auto& watch = dynamic_cast<SqliteLedger&>(*world.ledger).Watch();
  const ports::Moment before = watch.Now();
  EXPECT_TRUE(watch.IsUnchanged(vm.id, before));
  ASSERT_TRUE(Release("key-1"));
  EXPECT_FALSE(watch.IsUnchanged(vm.id, before));
}

}  // namespace
}  // namespace vmonce::ledger
