// Each way in which a VM's row is written ends what was read of it before.
#include "ledger/contract_world.h"

namespace vmonce::ledger {
namespace {

class Watch : public LedgerContract {
 protected:
  Watch() : watch(static_cast<SqliteLedger&>(*world.ledger).Watch()) {}

  // Whether `write` leaves what was read of the VM before it as it was.
  template <typename Write>
  bool Survives(const model::VmId& vm, Write write) {
    const ports::Moment read = watch.Now();
    EXPECT_TRUE(watch.IsUnchanged(vm, read));
    write();
    const bool survives = watch.IsUnchanged(vm, read);
    EXPECT_TRUE(watch.IsUnchanged(vm, watch.Now())) << "what is read anew stands again";
    return survives;
  }

  const ports::LedgerWatch& watch;
};
INSTANTIATE_TEST_SUITE_P(Watch, Watch, AllAdapters(), AdapterName);

TEST_P(Watch, EndsWithEveryWriteOfTheVmsRow) {
  const model::VmId vm = world.NewVm("key-1", "a").id;
  EXPECT_FALSE(Survives(vm, [&] { world.MakeReady(); }));
  EXPECT_FALSE(Survives(vm, [&] { world.MustAccept(world.Rename("", vm, "b")); }));
  EXPECT_FALSE(Survives(vm, [&] {
    ports::Observation seen;
    seen.vm = vm;
    seen.version = world.Vm(vm).version;
    seen.observed = model::Observed::kPaused;
    EXPECT_EQ(world.ledger->Observe(std::span(&seen, 1)), 1);
  }));
  EXPECT_FALSE(Survives(vm, [&] { world.MustAccept(world.Delete("", vm)); }));
  EXPECT_FALSE(Survives(vm, [&] { world.MakeDeleted(); }));

  const model::VmId other = world.NewVm("key-2", "c").id;
  world.MakeReady();
  EXPECT_FALSE(Survives(other, [&] { world.MustAccept(world.Stop("", other)); }));
}

TEST_P(Watch, EndsWithTheRecord) {
  const model::VmId vm = world.NewVm("key-1", "a").id;
  world.MakeReady();
  world.MustAccept(world.Delete("", vm));
  world.MakeDeleted();
  EXPECT_FALSE(Survives(vm, [&] {
    const model::RetentionPolicy policy;
    world.clock.Advance(policy.retention);
    const auto swept = world.ledger->Sweep(policy, 100);
    ASSERT_TRUE(swept.has_value());
    EXPECT_EQ(swept->expired, 2);
  }));
}

TEST_P(Watch, EndsWhenAFailedCreateIsTriedAnew) {
  const model::Vm vm = world.NewVm("key-1", "a");
  world.MakeFailed(/*passing=*/true);
  EXPECT_FALSE(Survives(vm.id, [&] {
    EXPECT_TRUE(world.ledger->Revive(vm.operation, 1, kAmple, kAmple).has_value());
  }));
}

TEST_P(Watch, SurvivesWhatIsRefusedAndWhatIsWrittenOfOthers) {
  const model::VmId vm = world.NewVm("key-1", "a").id;
  world.MakeReady();
  EXPECT_TRUE(Survives(vm, [&] {
    const auto refused = world.Accept(world.Create("key-2", {"a"}));
    EXPECT_EQ(WhyDeclined(refused), ports::DeclineReason::kNameTaken);
  }));
  // One of two: a VM may share the place.
  const bool first = Survives(vm, [&] { world.NewVm("key-3", "b"); });
  const bool second = Survives(vm, [&] { world.NewVm("key-4", "c"); });
  EXPECT_TRUE(first || second);
}

}  // namespace
}  // namespace vmonce::ledger
