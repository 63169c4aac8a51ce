// Restarts by the service, power through an update, and hosts that are lost and come back.
#include <gtest/gtest.h>

#include "ledger/contract_world.h"
#include "model/restart_limits.h"

namespace vmonce::ledger {
namespace {

using model::HostId;
using model::HostState;
using model::Observed;
using model::StopCause;
using model::VmState;
using ports::DeclineReason;

class PowerLedger : public LedgerContract {
 protected:
  model::Vm Ready(const std::string& key) {
    const model::Vm vm = world.NewVm(key, key);
    world.MakeReady();
    Observe(vm.id, Observed::kRunning);
    return world.Vm(vm.id);
  }
  void Observe(const model::VmId& id, Observed observed, StopCause cause = StopCause::kNone) {
    ports::Observation observation;
    observation.vm = id;
    observation.version = world.Vm(id).version;
    observation.observed = observed;
    observation.stopped_by = cause;
    EXPECT_EQ(world.ledger->Observe(std::span(&observation, 1)), 1);
  }
  ports::AcceptOutcome Restart(const model::VmId& id, std::int64_t version) {
    ports::Submission submission = world.OnVm(model::OperationKind::kStart, "", id);
    submission.change = ports::RestartVm{id, version};
    return world.Accept(submission);
  }
  // Plays the worker of a start or stop: what it observed in the end.
  void Finish(Observed observed, StopCause cause = StopCause::kNone) {
    for (const model::Operation& operation : world.Take()) {
      ports::Advance advance = World::Of(operation);
      advance.state = model::OperationState::kSucceeded;
      advance.items.front().phase = model::ItemPhase::kDone;
      ports::VmChange change;
      change.vm = model::VmId{operation.items.front().subject};
      change.observed = observed;
      change.stopped_by = cause;
      advance.changes = {change};
      EXPECT_EQ(world.Record(advance), ports::AdvanceOutcome::kRecorded);
    }
  }
  ports::AcceptOutcome Update(const std::string& key, const ports::UpdateVm& change) {
    ports::Submission submission = world.OnVm(model::OperationKind::kStop, key, change.vm);
    if (change.desired == model::Desired::kRunning) {
      submission.operation.kind = model::OperationKind::kStart;
    }
    submission.change = change;
    return world.Accept(submission);
  }
};
INSTANTIATE_TEST_SUITE_P(Power, PowerLedger, AllAdapters(), AdapterName);

TEST_P(PowerLedger, BeginsOneRestartAVersion) {
  const model::Vm vm = Ready("a");
  Observe(vm.id, Observed::kStopped, StopCause::kHost);
  const std::int64_t seen = world.Vm(vm.id).version;
  const auto first = Restart(vm.id, seen);
  ASSERT_NE(As<ports::Accepted>(first), nullptr);
  EXPECT_EQ(As<ports::Accepted>(first)->operation.kind, model::OperationKind::kStart);
  EXPECT_EQ(WhyDeclined(Restart(vm.id, seen)), DeclineReason::kStaleVersion);
  // One that read the row after the first was accepted.
  world.clock.Advance(std::chrono::hours(1));
  EXPECT_EQ(WhyDeclined(Restart(vm.id, world.Vm(vm.id).version)), DeclineReason::kWrongState);
  EXPECT_EQ(world.Take().size(), 1u);
}

TEST_P(PowerLedger, CountsRestartsAndBeginsAnewWhenSomebodyStartsIt) {
  const model::Vm vm = Ready("a");
  for (int i = 0; i < model::limits::kRestartsInARow; ++i) {
    Observe(vm.id, Observed::kStopped, StopCause::kHost);
    EXPECT_EQ(world.Vm(vm.id).restarts, i);
    world.clock.Advance(model::limits::kRestartBackoffCap);
    ASSERT_NE(As<ports::Accepted>(Restart(vm.id, world.Vm(vm.id).version)), nullptr) << i;
    Finish(Observed::kRunning);
  }
  Observe(vm.id, Observed::kStopped, StopCause::kHost);
  world.clock.Advance(std::chrono::hours(100));
  EXPECT_EQ(WhyDeclined(Restart(vm.id, world.Vm(vm.id).version)), DeclineReason::kWrongState);
  ports::Submission start = world.OnVm(model::OperationKind::kStart, "", vm.id);
  start.change = ports::PowerVm{vm.id, model::Desired::kRunning, std::nullopt};
  world.MustAccept(start);
  EXPECT_EQ(world.Vm(vm.id).restarts, 0);
}

TEST_P(PowerLedger, ForgetsRestartsOnceTheMachineRanSteadily) {
  const model::Vm vm = Ready("a");
  Observe(vm.id, Observed::kStopped, StopCause::kHost);
  ASSERT_NE(As<ports::Accepted>(Restart(vm.id, world.Vm(vm.id).version)), nullptr);
  Finish(Observed::kRunning);
  world.clock.Advance(model::limits::kRestartSteady);
  Observe(vm.id, Observed::kStopped, StopCause::kHost);
  EXPECT_EQ(world.Vm(vm.id).restarts, 0);
}

TEST_P(PowerLedger, KeepsTheCauseOfAStopUntilItRuns) {
  const model::Vm vm = Ready("a");
  Observe(vm.id, Observed::kStopped, StopCause::kGuest);
  EXPECT_EQ(world.Vm(vm.id).stopped_by, StopCause::kGuest);
  Observe(vm.id, Observed::kStopped, StopCause::kHost);
  EXPECT_EQ(world.Vm(vm.id).stopped_by, StopCause::kGuest) << "the same stop, less well known";
  Observe(vm.id, Observed::kRunning);
  EXPECT_EQ(world.Vm(vm.id).stopped_by, StopCause::kNone);
}

TEST_P(PowerLedger, StartsAndStopsThroughAnUpdate) {
  const model::Vm vm = Ready("a");
  ports::UpdateVm off;
  off.vm = vm.id;
  off.desired = model::Desired::kStopped;
  off.name = "renamed";
  const auto stop = Update("key-off", off);
  ASSERT_NE(As<ports::Accepted>(stop), nullptr);
  EXPECT_EQ(As<ports::Accepted>(stop)->operation.kind, model::OperationKind::kStop);
  EXPECT_EQ(As<ports::Accepted>(stop)->operation.state, model::OperationState::kAccepted);
  EXPECT_EQ(world.Vm(vm.id).desired, model::Desired::kStopped);
  EXPECT_EQ(world.Vm(vm.id).name, "renamed");
  Finish(Observed::kStopped, StopCause::kPerson);
  // What it is already is done at once.
  const auto again = Update("key-again", off);
  ASSERT_NE(As<ports::Accepted>(again), nullptr);
  EXPECT_EQ(As<ports::Accepted>(again)->operation.kind, model::OperationKind::kUpdate);
  EXPECT_EQ(As<ports::Accepted>(again)->operation.state, model::OperationState::kSucceeded);
  EXPECT_NE(As<ports::Known>(Update("key-off", off)), nullptr);
}

TEST_P(PowerLedger, ChangesThePolicyAtAnyTimeAndPowerOnlyOfWhatIsReady) {
  const model::Vm vm = world.NewVm("a", "a");
  ports::UpdateVm change;
  change.vm = vm.id;
  change.restart = model::RestartPolicy::kNever;
  ASSERT_NE(As<ports::Accepted>(Update("", change)), nullptr);
  EXPECT_EQ(world.Vm(vm.id).restart, model::RestartPolicy::kNever);
  change.desired = model::Desired::kStopped;
  EXPECT_EQ(WhyDeclined(Update("", change)), DeclineReason::kWrongState);
}

TEST_P(PowerLedger, WantsNothingOfADeletedVmAnyMore) {
  const model::Vm vm = Ready("a");
  world.MustAccept(world.Delete("", vm.id));
  EXPECT_EQ(world.Vm(vm.id).desired, model::Desired::kStopped);
}

TEST_P(PowerLedger, PlacesNothingOnAHostThatReturnsBeforeItWasSwept) {
  world.AddHost("h", {10, 80, 40960, 1000});
  const HostId host{"h"};
  world.NewVm("a", "a");
  auto advance = World::Of(world.TakeOne());
  ports::VmChange change;
  change.vm = model::VmId{advance.items.front().subject};
  change.place_on = host;
  advance.changes = {change};
  ASSERT_TRUE(world.ledger->SetHostState(host, HostState::kDead));
  ASSERT_TRUE(world.ledger->MarkReturned(host));
  EXPECT_TRUE(world.ledger->Hosts()->front().is_returning) << "it is dead";
  ASSERT_TRUE(world.ledger->SetHostState(host, HostState::kActive));
  EXPECT_EQ(world.Record(advance), ports::AdvanceOutcome::kNoRoom);
  ASSERT_TRUE(world.ledger->MarkReturned(host));
  EXPECT_FALSE(world.ledger->Hosts()->front().is_returning);
  EXPECT_EQ(world.Record(advance), ports::AdvanceOutcome::kRecorded);
}

TEST_P(PowerLedger, RemembersWhatLeftADeadHostAndOnlyThat) {
  world.AddHost("a", {10, 80, 40960, 1000});
  world.AddHost("b", {10, 80, 40960, 1000});
  world.NewVm("key", "web");
  auto advance = World::Of(world.TakeOne());
  const model::VmId vm{advance.items.front().subject};
  const auto place = [&](std::optional<HostId> on) {
    ports::VmChange change;
    change.vm = vm;
    change.place_on = on;
    change.release_host = !on;
    advance.changes = {change};
    EXPECT_EQ(world.Record(advance), ports::AdvanceOutcome::kRecorded);
  };
  const auto has_left = [&](const char* host) {
    return world.ledger->MovedAway(HostId{host}, std::span(&vm, 1))->size() == 1;
  };
  place(HostId{"a"});
  place(std::nullopt);
  EXPECT_FALSE(has_left("a")) << "it was not dead";
  place(HostId{"a"});
  ASSERT_TRUE(world.ledger->SetHostState(HostId{"a"}, HostState::kDead));
  place(HostId{"b"});
  EXPECT_TRUE(has_left("a"));
  EXPECT_FALSE(has_left("b"));
  // And back again: it is wanted there now.
  ASSERT_TRUE(world.ledger->SetHostState(HostId{"a"}, HostState::kActive));
  ASSERT_TRUE(world.ledger->MarkReturned(HostId{"a"}));
  ASSERT_TRUE(world.ledger->SetHostState(HostId{"b"}, HostState::kDead));
  place(HostId{"a"});
  EXPECT_FALSE(has_left("a"));
  EXPECT_TRUE(has_left("b"));
}

}  // namespace
}  // namespace vmonce::ledger
