#include "ledger/contract_world.h"

namespace vmonce::ledger {
namespace {

using model::OperationState;
using model::VmState;
using ports::AdvanceOutcome;

class Workers : public LedgerContract {};
INSTANTIATE_TEST_SUITE_P(Advance, Workers, AllAdapters(), AdapterName);

TEST_P(Workers, TakeEachDueOperationOnceAndRaiseItsFence) {
  world.NewVm("key-1", "a");
  const auto operation = world.TakeOne();
  EXPECT_EQ(operation.fence.value, 1);
  EXPECT_EQ(operation.lease_owner, kReplica.value);
  EXPECT_EQ(operation.lease_until, world.clock.Now() + kTtl);
  EXPECT_TRUE(operation.items.front().look_first);
  EXPECT_TRUE(world.Take(kOtherReplica).empty());
}

TEST_P(Workers, TakeAtMostAsManyAsAskedOldestFirst) {
  const auto first = world.NewVm("key-0", "vm-0");
  world.clock.Advance(Milliseconds(1));
  for (int i = 1; i < 4; ++i) world.NewVm(fmt::format("key-{}", i), fmt::format("vm-{}", i));
  const auto taken = world.Take(kReplica, 2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken.front().id, first.operation);
  EXPECT_EQ(world.Take(kReplica, 10).size(), 2u);
}

// report 31
TEST_P(Workers, LoseTheirLeaseToATakeOverAndWriteNothingMore) {
  const auto vm = world.NewVm("key-1", "a");
  const auto slow = world.TakeOne();
  auto advance = World::Of(slow);
  advance.items.front().look_first = false;
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  world.clock.Advance(kTtl);
  world.clock.Advance(Milliseconds(7));
  const auto taken = world.TakeOne(kOtherReplica);
  EXPECT_EQ(taken.fence.value, 2);
  EXPECT_TRUE(taken.items.front().look_first);
  // Its process may have died a moment ago, long after its lease ended.
  EXPECT_EQ(taken.items.front().unsettled_until, world.clock.Now() + kSettle);

  auto late = World::Of(slow);
  late.changes = {World::To(vm.id, VmState::kCreating)};
  EXPECT_EQ(world.Record(late), AdvanceOutcome::kLost);
  EXPECT_EQ(world.Vm(vm.id).state, VmState::kPending);
  const std::vector<model::Lease> leases = {slow.CurrentLease(), taken.CurrentLease()};
  const auto lost = world.ledger->Renew(leases, kTtl);
  ASSERT_EQ(lost->size(), 1u);
  EXPECT_EQ(lost->front(), slow.id);
}

TEST_P(Workers, DistrustAbsenceAfterAnotherProcessLeftACallOut) {
  world.NewVm("key-1", "a");
  auto given_back = World::Of(world.TakeOne());
  given_back.items.front().look_first = false;
  given_back.items.front().call_left_by = kReplica.value;
  given_back.release_due_in = Milliseconds(0);
  ASSERT_EQ(world.Record(given_back), AdvanceOutcome::kRecorded);

  // The same process knows of its call.
  const auto own = world.TakeOne(kReplica);
  EXPECT_FALSE(own.items.front().look_first);
  EXPECT_EQ(own.items.front().unsettled_until, Time{});
  EXPECT_EQ(own.items.front().call_left_by, kReplica.value);
  given_back = World::Of(own);
  given_back.release_due_in = Milliseconds(0);
  ASSERT_EQ(world.Record(given_back), AdvanceOutcome::kRecorded);

  const auto others = world.TakeOne(kOtherReplica);
  EXPECT_TRUE(others.items.front().look_first);
  EXPECT_EQ(others.items.front().unsettled_until, world.clock.Now() + kSettle);
  EXPECT_EQ(others.items.front().call_left_by, "");
}

// report 32
TEST_P(Workers, OfOneReplicaWithAnOldFenceHaveLostTheLeaseToo) {
  world.NewVm("key-1", "a");
  const auto first = world.TakeOne();
  world.clock.Advance(kTtl);
  world.TakeOne();
  EXPECT_EQ(world.Record(World::Of(first)), AdvanceOutcome::kLost);
}

TEST_P(Workers, KeepTheirLeaseByRenewingIt) {
  world.NewVm("key-1", "a");
  const auto operation = world.TakeOne();
  for (int i = 0; i < 4; ++i) {
    world.clock.Advance(kTtl / 2);
    const model::Lease lease = operation.CurrentLease();
    EXPECT_TRUE(world.ledger->Renew(std::span(&lease, 1), kTtl)->empty());
  }
  EXPECT_TRUE(world.Take(kOtherReplica).empty());
  EXPECT_EQ(world.ledger->NextDue()->value(), world.clock.Now() + kTtl);
}

TEST_P(Workers, GiveBackALeaseUntilTheOperationIsDueAgain) {
  world.NewVm("key-1", "a");
  auto advance = World::Of(world.TakeOne());
  advance.state = OperationState::kVerifying;
  advance.items.front().failures = 2;
  advance.items.front().look_first = false;
  advance.items.front().not_before = world.clock.Now() + Milliseconds(500);
  advance.is_stuck = true;
  advance.release_due_in = Milliseconds(500);
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_TRUE(world.Take().empty());
  EXPECT_EQ(world.ledger->NextDue()->value(), world.clock.Now() + Milliseconds(500));
  EXPECT_EQ(world.ledger->Totals()->stuck, 1);
  EXPECT_EQ(world.ledger->Totals()->operations_in_state.at("verifying"), 1);
  world.clock.Advance(Milliseconds(500));
  const auto again = world.TakeOne();
  EXPECT_EQ(again.fence.value, 2);
  EXPECT_EQ(again.items, advance.items);  // A lease that was given back leaves no doubt.
  EXPECT_EQ(again.state, OperationState::kVerifying);
}

TEST_P(Workers, MakeAnUnleasedOperationDueAndLeaveALeasedOneAlone) {
  const auto vm = world.NewVm("key-1", "a");
  auto advance = World::Of(world.TakeOne());
  ASSERT_TRUE(world.ledger->MakeDue(vm.operation).has_value());
  EXPECT_TRUE(world.Take(kOtherReplica).empty());
  advance.release_due_in = Milliseconds(60'000);
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_TRUE(world.Take().empty());
  ASSERT_TRUE(world.ledger->MakeDue(vm.operation).has_value());
  EXPECT_EQ(world.Take().size(), 1u);
}

TEST_P(Workers, FinishAnOperationOnceAndForAll) {
  const auto vm = world.NewVm("key-1", "a");
  const auto operation = world.TakeOne();
  auto advance = World::Of(operation);
  advance.state = OperationState::kSucceeded;
  advance.items.front().phase = model::ItemPhase::kDone;
  advance.drop_secrets = true;
  advance.release_due_in = Milliseconds(0);
  advance.changes = {World::To(vm.id, VmState::kCreating)};
  advance.changes.front().take_hold = true;
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  const auto finished = world.Operation(operation.id);
  EXPECT_EQ(finished.finished, world.clock.Now());
  EXPECT_EQ(finished.lease_owner, model::kUnleased);
  EXPECT_EQ(finished.sealed_secrets, "");
  EXPECT_FALSE(world.Vm(vm.id).holder.has_value());
  EXPECT_EQ(world.Record(advance), AdvanceOutcome::kLost);
  EXPECT_FALSE(world.ledger->NextDue()->has_value());
  EXPECT_EQ(world.ledger->Totals()->unfinished, 0);
  EXPECT_EQ(world.ledger->Totals()->operations_in_state.at("succeeded"), 1);
}

// report 100
TEST_P(Workers, AreToldOfAMarkAndWriteNothing) {
  const auto vm = world.NewVm("key-1", "a");
  auto advance = World::Of(world.TakeOne());
  world.MustAccept(world.Delete("", vm.id));
  advance.unless_marked = vm.id.value;
  advance.state = OperationState::kVerifying;
  EXPECT_EQ(world.Record(advance), AdvanceOutcome::kMarked);
  EXPECT_EQ(world.Operation(vm.operation).state, OperationState::kAccepted);
  advance.unless_marked.reset();
  advance.changes = {World::To(vm.id, VmState::kCreating)};
  EXPECT_EQ(world.Record(advance), AdvanceOutcome::kMarked);
  advance.changes.clear();
  advance.state = OperationState::kCancelled;
  EXPECT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
}

TEST_P(Workers, HoldAVmOneAtATime) {
  const auto vm = world.NewVm("key-1", "a");
  auto create = World::Of(world.TakeOne());
  create.changes = {World::To(vm.id, VmState::kCreating)};
  create.changes.front().take_hold = true;
  ASSERT_EQ(world.Record(create), AdvanceOutcome::kRecorded);
  const auto version = world.Vm(vm.id).version;
  ASSERT_EQ(world.Record(create), AdvanceOutcome::kRecorded);  // Its own hold is no obstacle.
  EXPECT_EQ(world.Vm(vm.id).version, version);

  const auto deletion = world.Delete("", vm.id);
  world.MustAccept(deletion);
  auto remove = World::Of(world.TakeOne());
  remove.changes.resize(1);
  remove.changes.front().vm = vm.id;
  remove.changes.front().take_hold = true;
  remove.timeline.resize(1);
  EXPECT_EQ(world.Record(remove), AdvanceOutcome::kHeld);
  create.changes.front() = {};
  create.changes.front().vm = vm.id;
  create.changes.front().release_hold = true;
  ASSERT_EQ(world.Record(create), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.Record(remove), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.Vm(vm.id).holder, deletion.operation.id);
}

TEST_P(Workers, PlaceVmsWhereThereIsRoomAndGiveItBack) {
  world.AddHost("small", {1, 8, 4096, 100});
  world.AddHost("large", {10, 80, 40960, 1000});
  const auto a = world.NewVm("key-1", "a");
  const auto b = world.NewVm("key-2", "b");
  const auto taken = world.Take();
  ASSERT_EQ(taken.size(), 2u);
  const auto place = [&](const model::Operation& operation, const char* host) {
    auto advance = World::Of(operation);
    ports::VmChange change;
    change.vm = model::VmId{operation.items.front().subject};
    change.place_on = model::HostId{host};
    advance.changes = {change};
    return world.Record(advance);
  };
  EXPECT_EQ(place(taken[0], "small"), AdvanceOutcome::kRecorded);
  EXPECT_EQ(place(taken[0], "small"), AdvanceOutcome::kRecorded);  // Twice is once.
  EXPECT_EQ(world.ReservedOn("small"), (model::Resources{1, 1, 512, 3}));
  EXPECT_EQ(place(taken[1], "small"), AdvanceOutcome::kNoRoom);
  EXPECT_EQ(place(taken[1], "unheard-of"), AdvanceOutcome::kNoRoom);
  EXPECT_EQ(place(taken[1], "large"), AdvanceOutcome::kRecorded);
  EXPECT_EQ(place(taken[0], "large"), AdvanceOutcome::kNoRoom) << "its host is not dead";
  ASSERT_TRUE(world.ledger->SetHostState(model::HostId{"small"}, model::HostState::kDead));
  EXPECT_EQ(place(taken[0], "large"), AdvanceOutcome::kRecorded);  // Moves.
  EXPECT_EQ(world.ReservedOn("small"), model::Resources{});
  EXPECT_EQ(world.ReservedOn("large").vms, 2);
  EXPECT_EQ(world.ledger->VmsOnHost(model::HostId{"large"}, {})->size(), 2u);
  ASSERT_TRUE(world.ledger->SetHostState(model::HostId{"small"}, model::HostState::kDraining));
  EXPECT_EQ(place(taken[0], "small"), AdvanceOutcome::kNoRoom);

  auto advance = World::Of(taken[0]);
  ports::VmChange back;
  back.vm = model::VmId{taken[0].items.front().subject};
  back.release_host = true;
  advance.changes = {back};
  EXPECT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.ReservedOn("large").vms, 1);
  EXPECT_FALSE(world.Vm(back.vm).host.has_value());
}

TEST_P(Workers, UndoAWholeAdvanceWhenOneOfItsChangesIsRefused) {
  world.AddHost("small", {1, 8, 4096, 100});
  const auto outcome = world.Accept(world.Create("key-1", {"a-0", "a-1"}));
  auto advance = World::Of(world.TakeOne());
  for (const model::Vm& vm : std::get<ports::Accepted>(*outcome).vms) {
    ports::VmChange change = World::To(vm.id, VmState::kCreating);
    change.place_on = model::HostId{"small"};
    advance.changes.push_back(change);
  }
  EXPECT_EQ(world.Record(advance), AdvanceOutcome::kNoRoom);
  EXPECT_EQ(world.ReservedOn("small"), model::Resources{});
  EXPECT_EQ(world.Vm(advance.changes.front().vm).state, VmState::kPending);
}

// report 127, report 130
TEST_P(Workers, ReleaseNameAndQuotaOnceHoweverOftenTheySaySo) {
  world.AddHost("h", {10, 80, 40960, 1000});
  const auto vm = world.NewVm("key-1", "a");
  world.NewVm("key-2", "b");
  const auto taken = world.Take();
  auto advance = World::Of(taken[0].id == vm.operation ? taken[0] : taken[1]);
  advance.changes = {World::To(vm.id, VmState::kCreating)};
  advance.changes.front().place_on = model::HostId{"h"};
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  advance.changes = {World::To(vm.id, VmState::kFailed)};
  advance.changes.front().release_reservation = true;
  advance.changes.front().failure = model::Failure{"x", "y", true};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
    EXPECT_EQ(world.Usage().vms, 1);
    EXPECT_EQ(world.ReservedOn("h").vms, 0);
  }
  advance.changes.front() = {};
  advance.changes.front().vm = vm.id;
  advance.changes.front().release_host = true;
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.ReservedOn("h").vms, 0);
  EXPECT_EQ(world.Vm(vm.id).failure->code, "x");
}

TEST_P(Workers, RaiseAVmsVersionWithEveryVisibleWrite) {
  const auto vm = world.NewVm("key-1", "a");
  auto advance = World::Of(world.TakeOne());
  advance.changes.resize(1);
  ports::VmChange& change = advance.changes.front();
  change.vm = vm.id;
  change.take_hold = true;
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.Vm(vm.id).version, 1);
  change.state = VmState::kCreating;
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.Vm(vm.id).version, 2);
  change.observed = model::Observed::kRunning;
  change.failure = model::Failure{"a", "\xff is no UTF-8", false};
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_EQ(world.Vm(vm.id).version, 3);
  EXPECT_EQ(world.Vm(vm.id).failure, change.failure);
  change.failure.reset();
  change.clear_failure = true;
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  EXPECT_FALSE(world.Vm(vm.id).failure.has_value());
}

TEST_P(Workers, TellTheStoryOfAnOperationInItsOrder) {
  auto submission = world.Create("key-1", {"a"});
  submission.lease = ports::LeaseRequest{kReplica, kTtl};
  world.MustAccept(submission);
  world.clock.Advance(kTtl);
  auto advance = World::Of(world.TakeOne(kOtherReplica));
  model::TimelineEntry line;
  line.operation = submission.operation.id;
  line.replica = kOtherReplica.value;
  line.index = 0;
  line.event = "step_done";
  line.detail = "disk";
  advance.timeline = {line, line};
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  line.event = "duplicate_served";
  ASSERT_TRUE(world.ledger->AppendTimeline(std::span(&line, 1)));
  const auto lines = world.ledger->Timeline(submission.operation.id);
  std::vector<std::string> events;
  for (const auto& entry : *lines) events.push_back(entry.event);
  EXPECT_EQ(events, (std::vector<std::string>{"accepted", "leased", "taken_over", "step_done",
                                              "step_done", "duplicate_served"}));
  EXPECT_EQ(lines->front().replica, kReplica.value);
  EXPECT_EQ(lines->at(3).at, world.clock.Now());
  EXPECT_EQ(lines->at(3).index, 0);
  line.operation = model::OperationId{world.NewId()};
  EXPECT_TRUE(world.ledger->AppendTimeline(std::span(&line, 1)));
}

// report 41
TEST_P(Workers, TwentyRetriesOfAFailedOperationMakeOneNewAttempt) {
  const auto vm = world.NewVm("key-1", "a");
  world.MakeFailed(true);
  EXPECT_EQ(world.Usage().vms, 0);
  std::vector<std::optional<ports::AcceptOutcome>> outcomes(20);
  {
    std::vector<std::unique_ptr<Thread>> retries;
    for (auto& outcome : outcomes) {
      retries.push_back(world.threads->Spawn("retry", [&](std::stop_token) {
        outcome = world.ledger->Revive(vm.operation, 1, kAmple, kAmple);
      }));
    }
  }
  int accepted = 0;
  for (const auto& outcome : outcomes) {
    if (As<ports::Accepted>(*outcome)) ++accepted;
    EXPECT_TRUE(As<ports::Accepted>(*outcome) || As<ports::Known>(*outcome));
  }
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(world.Usage().vms, 1);
  const auto operation = world.TakeOne();
  EXPECT_EQ(operation.attempt, 2);
  EXPECT_EQ(operation.fence.value, 2);
  EXPECT_EQ(operation.items.front().phase, model::ItemPhase::kForward);
  EXPECT_FALSE(operation.failure.has_value());
  EXPECT_EQ(world.Vm(vm.id).state, VmState::kCreating);
  // A delete waits for it as for a first attempt.
  EXPECT_EQ(world.Vm(vm.id).holder, vm.operation);
  EXPECT_EQ(world.ledger->Totals()->unfinished, 1);
  EXPECT_EQ(world.ledger->Totals()->operations_in_state.at("failed"), 0);
}

TEST_P(Workers, ReviveOnlyWhatFailedForAPassingCauseAndStillMay) {
  const auto lasting = world.NewVm("key-1", "a");
  world.MakeFailed(false);
  EXPECT_NE(As<ports::Known>(world.ledger->Revive(lasting.operation, 1, kAmple, kAmple)), nullptr);
  const auto passing = world.NewVm("key-2", "b");
  EXPECT_NE(As<ports::Known>(world.ledger->Revive(passing.operation, 1, kAmple, kAmple)), nullptr);
  world.MakeFailed(true);
  EXPECT_NE(As<ports::Known>(world.ledger->Revive(passing.operation, 2, kAmple, kAmple)), nullptr);
  EXPECT_EQ(WhyDeclined(world.ledger->Revive(passing.operation, 1, {}, kAmple)),
            ports::DeclineReason::kQuotaExceeded);
  const auto thief = world.NewVm("key-3", "b");
  EXPECT_EQ(WhyDeclined(world.ledger->Revive(passing.operation, 1, kAmple, kAmple)),
            ports::DeclineReason::kNameTaken);
  EXPECT_EQ(world.Operation(passing.operation).state, OperationState::kFailed);
  world.MakeReady();
  world.MustAccept(world.Delete("", thief.id));
  world.MakeDeleted();
  world.MustAccept(world.Delete("", passing.id));
  EXPECT_NE(As<ports::Known>(world.ledger->Revive(passing.operation, 1, kAmple, kAmple)), nullptr);
  EXPECT_EQ(world.ledger->Revive(model::OperationId{world.NewId()}, 1, kAmple, kAmple).error().code,
            ErrorCode::kNotFound);
}

// report 94
TEST_P(Workers, ReviveOfABatchTouchesOnlyItsPassingFailures) {
  const auto outcome = world.Accept(world.Create("key-1", {"x-0", "x-1", "x-2", "x-3"}));
  const auto vms = std::get<ports::Accepted>(*outcome).vms;
  auto advance = World::Of(world.TakeOne());
  for (const model::Vm& vm : vms) advance.changes.push_back(World::To(vm.id, VmState::kCreating));
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  const auto end = [&](int index, VmState state, bool passing) {
    ports::VmChange& change = advance.changes[index] = World::To(vms[index].id, state);
    change.release_reservation = state == VmState::kFailed;
    model::Item& item = advance.items[index];
    item.phase = state == VmState::kFailed ? model::ItemPhase::kFailed : model::ItemPhase::kDone;
    if (state == VmState::kFailed) item.failure = model::Failure{"f", "", passing};
  };
  end(0, VmState::kReady, false);
  end(1, VmState::kFailed, true);
  end(2, VmState::kFailed, false);
  end(3, VmState::kFailed, true);
  advance.state = OperationState::kFailed;
  advance.failure = model::Failure{"f", "", true};
  ASSERT_EQ(world.Record(advance), AdvanceOutcome::kRecorded);
  world.MustAccept(world.Delete("", vms[3].id));
  EXPECT_EQ(world.Usage().vms, 1);

  const auto revived = world.ledger->Revive(vms[0].operation, 1, kAmple, kAmple);
  const auto* accepted = As<ports::Accepted>(revived);
  ASSERT_NE(accepted, nullptr);
  EXPECT_EQ(accepted->vms.size(), 4u);
  EXPECT_EQ(accepted->operation.items[0].phase, model::ItemPhase::kDone);
  EXPECT_EQ(accepted->operation.items[1].phase, model::ItemPhase::kForward);
  EXPECT_EQ(accepted->operation.items[2].phase, model::ItemPhase::kFailed);
  EXPECT_EQ(accepted->operation.items[3].phase, model::ItemPhase::kFailed);
  EXPECT_EQ(world.Usage().vms, 2);
}

}  // namespace
}  // namespace vmonce::ledger
