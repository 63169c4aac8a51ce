// The reconciler over a whole node.
#include <gtest/gtest.h>

#include "model/label.h"
#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using hypervisor::SimulatedDomain;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

SimulatedDomain Labelled(World& world, const model::VmId& id) {
  SimulatedDomain domain;
  domain.id = id;
  domain.name = model::DomainName(world.ledger().Id(), id);
  domain.power = model::Observed::kRunning;
  model::Label label;
  label.ledger = world.ledger().Id();
  label.host = model::HostId{"local"};
  label.project = model::ProjectId{"default"};
  label.fence = {1};
  domain.label = label;
  return domain;
}

model::VmId MadeUpId(std::uint8_t last) {
  model::VmId id;
  id.value.bytes[0] = 1;
  id.value.bytes[15] = last;
  return id;
}

// Report 19: a machine that cannot be seen is missing, told, and never made again.
TEST(Reconcile, TellsAMissingMachineAndFindsItAgain) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  const SimulatedDomain domain = *world.host().Find(id);
  ASSERT_TRUE(world.host()
                  .ChangeDomain(SimulatedCall::kUndefine, id,
                                [](std::optional<SimulatedDomain>& d) -> Status {
                                  d.reset();
                                  return {};
                                })
                  .has_value());
  EXPECT_EQ(world.Reconcile().missing, 1);
  EXPECT_EQ(world.VmRow(id).state, VmState::kMissing);
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Effects(SimulatedCall::kDefine), 1);
  const service::Outcome again = world.Create("key-1", "web");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->vms.front().state, VmState::kMissing);

  world.host().Plant(domain);
  EXPECT_EQ(world.Reconcile().found, 1);
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
}

TEST(Reconcile, DoesNotTakeALaggingListForAbsence) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  Fault omits;
  omits.omit.push_back(created->vms.front().id);
  world.faults().Add(SimulatedCall::kList, omits);
  EXPECT_EQ(world.Reconcile().missing, 0);
  EXPECT_EQ(world.faults().fired(), 1);
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kReady);
}

// Report 103: an error that speaks of "not found" is no typed not-found.
TEST(Reconcile, DoesNotTakeAnErrorsTextForAbsence) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  Fault omits;
  omits.omit.push_back(created->vms.front().id);
  world.faults().Add(SimulatedCall::kList, omits);
  Fault text;
  text.instead = Error{ErrorCode::kUnavailable, "no such host: domain not found"};
  world.faults().Add(SimulatedCall::kLook, text);
  EXPECT_EQ(world.Reconcile().missing, 0);
  EXPECT_EQ(world.faults().fired(), 2);
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kReady);
}

// Report 104: nothing knows it (its row was lost): stopped and told after two sightings, never
// deleted.
TEST(Reconcile, QuarantinesAMachineThatNothingKnowsAndNeverDeletesIt) {
  World world;
  const SimulatedDomain stray = Labelled(world, MadeUpId(1));
  world.host().Plant(stray);
  EXPECT_EQ(world.Reconcile().quarantined, 0);
  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile().quarantined, 1);
  EXPECT_EQ(world.host().Find(stray.id)->power, model::Observed::kStopped);
  world.Advance(std::chrono::hours(24 * 365));
  EXPECT_EQ(world.Reconcile().removed, 0);
  EXPECT_TRUE(world.host().Find(stray.id).has_value());
}

TEST(Reconcile, RemovesTheMachineOfADeletedVmAfterTheGrace) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  const SimulatedDomain domain = *world.host().Find(id);
  ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet();
  SimulatedDomain back = domain;
  back.volumes.clear();
  world.host().Plant(back);
  EXPECT_EQ(world.Reconcile().removed, 0);
  world.Advance(Milliseconds(30'000));
  EXPECT_EQ(world.Reconcile().removed, 0) << "within the grace";
  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile().removed, 1);
  EXPECT_FALSE(world.host().Find(id).has_value());
}

// Report 115: look-alike names and other ledgers' labels are strangers.
TEST(Reconcile, NeverTouchesWhatDoesNotCarryOurLabel) {
  World world;
  SimulatedDomain unlabelled = Labelled(world, MadeUpId(1));
  unlabelled.label.reset();
  SimulatedDomain foreign = Labelled(world, MadeUpId(2));
  foreign.label->ledger = model::LedgerId{"0123456789ab"};
  foreign.name = "vmonce-0123456789ab-x";
  world.host().Plant(unlabelled);
  world.host().Plant(foreign);
  for (int sweep = 0; sweep < 4; ++sweep) {
    world.Reconcile();
    world.Advance(std::chrono::hours(48));
  }
  EXPECT_EQ(*world.host().Find(unlabelled.id), unlabelled);
  EXPECT_EQ(*world.host().Find(foreign.id), foreign);
}

// Report 116: sweeping at every moment of many creates takes nothing away.
TEST(Reconcile, TakesNothingAwayFromCreatesInFlight) {
  World world;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(world.Create("key-" + std::to_string(i), "web-" + std::to_string(i)).has_value());
  }
  world.faults().OnCall(SimulatedCall::kStart, [&] {
    const workflows::ReconcileReport report = world.Reconcile();
    ASSERT_EQ(report.strays + report.removed + report.quarantined + report.missing, 0);
  });
  world.RunUntilQuiet();
  EXPECT_EQ(world.Audit(), "");
}

TEST(Reconcile, StopsWhenItWouldRemoveTooMuch) {
  World world;
  std::vector<model::VmId> ids;
  for (int i = 0; i < 6; ++i) {
    const service::Outcome created =
        world.Create("key-" + std::to_string(i), "web-" + std::to_string(i));
    ids.push_back(created->vms.front().id);
  }
  world.RunUntilQuiet();
  for (const model::VmId& id : ids) ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
  world.RunUntilQuiet();
  for (const model::VmId& id : ids) world.host().Plant(Labelled(world, id));
  world.Reconcile();
  world.Advance(std::chrono::hours(48));
  const workflows::ReconcileReport report = world.Reconcile();
  EXPECT_TRUE(report.is_alarmed);
  EXPECT_EQ(report.removed, 0);
  EXPECT_EQ(world.host().Domains().size(), 6u);
}

// Protocol section 11: labels ahead of the ledger mean that an older copy of it was restored.
TEST(Reconcile, RefusesAHostWhoseLabelsAreAheadOfTheLedger) {
  World world;
  ASSERT_TRUE(world.Create("key-1", "web").has_value());
  world.RunUntilQuiet();
  SimulatedDomain newer = Labelled(world, MadeUpId(1));
  newer.label->sequence = 1000;
  world.host().Plant(newer);
  EXPECT_EQ(world.Age(), workflows::LedgerAge::kCurrent);
  EXPECT_FALSE(world.TryRestart().has_value());
  EXPECT_EQ(world.Age(), workflows::LedgerAge::kBehind);
  for (int sweep = 0; sweep < 4; ++sweep) {
    EXPECT_NE(world.Reconcile().problem, "");
    world.Advance(std::chrono::hours(48));
  }
  EXPECT_EQ(*world.host().Find(newer.id), newer);
}

TEST(Reconcile, RecordsThePowerThatItSees) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  world.host().PowerOffAll();
  world.Reconcile();
  EXPECT_EQ(world.VmRow(created->vms.front().id).observed, model::Observed::kStopped);
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kReady);
}

// The list is older than the row: the machine was started, and the start recorded, after the list
// was taken.
TEST(Reconcile, DoesNotRecordThePowerOfALaggingList) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  const model::VmId id = created->vms.front().id;
  world.faults().OnCall(SimulatedCall::kStart, [&] { world.Advance(Milliseconds(1'000)); });
  world.RunUntilQuiet();
  Fault lag;
  lag.list_lag = Milliseconds(500);
  world.faults().Add(SimulatedCall::kList, lag);
  world.Reconcile();
  EXPECT_EQ(world.faults().fired(), 1);
  EXPECT_EQ(world.VmRow(id).observed, model::Observed::kRunning);
}

TEST(Reconcile, SaysWhyItCouldNotSweepAndChangesNothing) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::Vm before = world.VmRow(created->vms.front().id);
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "down"};
  for (const SimulatedCall call : {SimulatedCall::kConnect, SimulatedCall::kList}) {
    world.faults().Add(call, down);
    EXPECT_NE(world.Reconcile().problem, "") << ToString(call);
  }
  EXPECT_EQ(world.faults().fired(), 2);
  EXPECT_EQ(world.VmRow(before.id).version, before.version);
  EXPECT_EQ(world.Reconcile().problem, "");
}

TEST(Reconcile, WakesACreateThatWaitsWhileItsMachineIsThere) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  Fault lost;
  lost.lose_reply = true;
  world.faults().Add(SimulatedCall::kStart, lost);
  while (world.Step()) {
  }
  EXPECT_EQ(world.Reconcile().made_due, 1);
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kCreating)
      << "a sweep advances nothing itself";
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kReady);
}

// A machine that is being deleted is the delete's business.
TEST(Reconcile, LeavesAMachineAloneThatIsBeingDeleted) {
  World world;
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  ASSERT_TRUE(world.Change(Kind::kDelete, created->vms.front().id).has_value());
  world.faults().OnCall(SimulatedCall::kUndefine, [&] {
    const workflows::ReconcileReport report = world.Reconcile();
    EXPECT_EQ(report.strays + report.missing + report.removed + report.kept_volumes, 0);
  });
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(created->vms.front().id).state, VmState::kDeleted);
}

// A stray that was not there in between is a new one.
TEST(Reconcile, CountsTheSightingsOfAStrayOnlyInARow) {
  World world;
  const SimulatedDomain stray = Labelled(world, MadeUpId(1));
  world.host().Plant(stray);
  world.Reconcile();
  Fault omits;
  omits.omit.push_back(stray.id);
  world.faults().Add(SimulatedCall::kList, omits);
  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile().strays, 0);
  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile().quarantined, 0);
  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile().quarantined, 1);
}

TEST(Reconcile, QuarantinesAStrayOnce) {
  World world;
  SimulatedDomain stray = Labelled(world, MadeUpId(1));
  world.host().Plant(stray);
  world.Reconcile();
  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile().quarantined, 1);
  // A person started it again: that is theirs to decide.
  world.host().Plant(stray);
  world.Advance(Milliseconds(60'000));
  EXPECT_EQ(world.Reconcile().quarantined, 0);
  EXPECT_EQ(world.host().Find(stray.id)->power, model::Observed::kRunning);
}

TEST(Reconcile, RemovesTheMachineOfAFailedVmAndKeepsTheOneOfItsNewAttempt) {
  World world;
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "down"};
  world.faults().Add(SimulatedCall::kDefine, down, 5);
  const service::Outcome created = world.Create("key-1", "web");
  world.RunUntilQuiet();
  const model::VmId id = created->vms.front().id;
  ASSERT_EQ(world.VmRow(id).state, VmState::kFailed);
  SimulatedDomain late = Labelled(world, id);
  late.label->operation = created->operation->id;
  world.host().Plant(late);
  EXPECT_EQ(world.Reconcile().strays, 1);
  world.Advance(Milliseconds(30'000));
  ASSERT_TRUE(world.Create("key-1", "web").has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
  for (int sweep = 0; sweep < 3; ++sweep) {
    world.Advance(std::chrono::hours(48));
    const workflows::ReconcileReport report = world.Reconcile();
    EXPECT_EQ(report.strays + report.removed, 0);
  }
  EXPECT_TRUE(world.host().Find(id).has_value());
}

TEST(Reconcile, CountsADiskThatNoVmWantsAndKeepsIt) {
  World world;
  const model::VmId id = MadeUpId(9);
  const std::string disk = model::DiskName(world.ledger().Id(), id);
  ASSERT_TRUE(world.host()
                  .AddVolume(SimulatedCall::kCreateDisk, id, disk,
                             [](const std::optional<SimulatedDomain>&) { return Status(); })
                  .has_value());
  for (int sweep = 0; sweep < 3; ++sweep) {
    EXPECT_EQ(world.Reconcile().kept_volumes, 1);
    world.Advance(std::chrono::hours(48));
  }
  EXPECT_TRUE(world.host().HasVolume(disk));
}

}  // namespace
}  // namespace vmonce::node
