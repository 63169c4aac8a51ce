#include <atomic>
#include <set>

#include "ledger/contract_world.h"

namespace vmonce::ledger {
namespace {

using ports::Accepted;
using ports::DeclineReason;
using ports::Joined;
using ports::Known;

INSTANTIATE_TEST_SUITE_P(Accept, LedgerContract, AllAdapters(), AdapterName);

TEST_P(LedgerContract, AcceptsACreateAndReadsItBackAsItWasAsked) {
  const auto submission = world.Create("key-1", {"web"});
  const auto outcome = world.Accept(submission);
  const auto* accepted = As<Accepted>(outcome);
  ASSERT_NE(accepted, nullptr);
  EXPECT_EQ(accepted->operation.sequence, 1);
  EXPECT_EQ(accepted->operation.state, model::OperationState::kAccepted);
  EXPECT_EQ(accepted->operation.fence.value, 0);
  EXPECT_EQ(accepted->operation.lease_owner, model::kUnleased);
  EXPECT_EQ(accepted->operation.accepted, world.clock.Now());

  const auto read = world.Operation(submission.operation.id);
  EXPECT_EQ(read.key_hash, submission.operation.key_hash);
  EXPECT_EQ(read.fingerprint, submission.operation.fingerprint);
  EXPECT_EQ(read.canonical_request, submission.operation.canonical_request);
  EXPECT_EQ(read.intent, submission.operation.intent);
  EXPECT_EQ(read.sealed_secrets, submission.operation.sealed_secrets);
  EXPECT_EQ(read.items, submission.operation.items);
  EXPECT_EQ(read.due, world.clock.Now());

  const model::Vm asked = std::get<ports::CreateVms>(submission.change).vms.front();
  const model::Vm vm = world.Vm(asked.id);
  EXPECT_EQ(vm.spec, asked.spec);
  EXPECT_EQ(vm.labels, asked.labels);
  EXPECT_EQ(vm.name, "web");
  EXPECT_EQ(vm.mac, asked.mac);
  EXPECT_EQ(vm.operation, submission.operation.id);
  EXPECT_EQ(vm.state, model::VmState::kPending);
  EXPECT_EQ(vm.version, 1);
  EXPECT_TRUE(vm.holds_reservation);
  EXPECT_EQ(vm.created, world.clock.Now());
  EXPECT_EQ(world.ledger->VmsOf(submission.operation.id)->size(), 1u);
}

TEST_P(LedgerContract, AnswersTheSameKeyWithTheFirstRecord) {
  const auto first = world.Accept(world.Create("key-1", {"web"}));
  const auto second = world.Accept(world.Create("key-1", {"other"}));
  ASSERT_NE(As<Accepted>(first), nullptr);
  const auto* known = As<Known>(second);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->operation.id, As<Accepted>(first)->operation.id);
  ASSERT_EQ(known->vms.size(), 1u);
  EXPECT_EQ(known->vms.front().id, As<Accepted>(first)->vms.front().id);
  EXPECT_EQ(world.Usage().vms, 1);
  EXPECT_EQ(world.ledger->Totals()->unfinished, 1);
}

TEST_P(LedgerContract, KeepsKeysOfProjectsApart) {
  const auto first = world.Accept(world.Create("key-1", {"web"}));
  world.project.value = "other";
  const auto second = world.Accept(world.Create("key-1", {"web"}));
  EXPECT_NE(As<Accepted>(first), nullptr);
  EXPECT_NE(As<Accepted>(second), nullptr);
}

TEST_P(LedgerContract, LeasesToTheAcceptorInTheSameTransaction) {
  auto submission = world.Create("key-1", {"web"});
  submission.lease = ports::LeaseRequest{kReplica, kTtl};
  const auto outcome = world.Accept(submission);
  const auto* accepted = As<Accepted>(outcome);
  ASSERT_NE(accepted, nullptr);
  EXPECT_EQ(accepted->operation.lease_owner, kReplica.value);
  EXPECT_EQ(accepted->operation.fence.value, 1);
  EXPECT_EQ(accepted->operation.lease_until, world.clock.Now() + kTtl);
  EXPECT_TRUE(world.Take(kOtherReplica).empty());
  EXPECT_EQ(world.Record(World::Of(accepted->operation)), ports::AdvanceOutcome::kRecorded);
}

TEST_P(LedgerContract, RefusedMembersOfABatchUndoThemselvesAlone) {
  const auto taken = world.NewVm("key-0", "taken");
  auto too_much = world.Create("key-2", {"b"});
  std::get<ports::CreateVms>(too_much.change).quota = {2, 1000, 1'000'000, 1000};
  const std::vector<ports::Submission> batch = {
      world.Create("key-1", {"a"}),     world.Create("key-n", {"taken"}), too_much,
      world.Create("key-1", {"again"}), world.Create("key-3", {"c"}),
  };
  const auto outcomes = world.ledger->Accept(batch);
  ASSERT_EQ(outcomes.size(), 5u);
  EXPECT_NE(As<Accepted>(outcomes[0]), nullptr);
  EXPECT_EQ(WhyDeclined(outcomes[1]), DeclineReason::kNameTaken);
  EXPECT_EQ(As<ports::Declined>(outcomes[1])->other_vm, taken.id);
  EXPECT_EQ(WhyDeclined(outcomes[2]), DeclineReason::kQuotaExceeded);
  ASSERT_NE(As<Known>(outcomes[3]), nullptr);
  EXPECT_EQ(As<Known>(outcomes[3])->operation.id, batch[0].operation.id);
  EXPECT_NE(As<Accepted>(outcomes[4]), nullptr);
  EXPECT_EQ(world.Usage().vms, 3);
  EXPECT_FALSE(world.ledger->GetOperation(batch[1].operation.id)->has_value());
  EXPECT_FALSE(world.ledger->GetOperation(batch[2].operation.id)->has_value());
}

// report 44
TEST_P(LedgerContract, ARefusalDoesNotConsumeTheKey) {
  auto submission = world.Create("key-1", {"web"});
  std::get<ports::CreateVms>(submission.change).quota = {0, 0, 0, 0};
  const auto refused = world.Accept(submission);
  EXPECT_EQ(WhyDeclined(refused), DeclineReason::kQuotaExceeded);
  EXPECT_FALSE(As<ports::Declined>(refused)->detail.empty());
  std::get<ports::CreateVms>(submission.change).quota = kAmple;
  EXPECT_NE(As<Accepted>(world.Accept(submission)), nullptr);
}

TEST_P(LedgerContract, AnswersAKnownKeyWithoutAskingForNameQuotaOrCapacityAgain) {
  world.NewVm("key-1", "web");
  auto again = world.Create("key-1", {"web"});
  auto& change = std::get<ports::CreateVms>(again.change);
  change.quota = change.capacity = {0, 0, 0, 0};
  again.max_backlog = 0;
  EXPECT_NE(As<Known>(world.Accept(again)), nullptr);
}

TEST_P(LedgerContract, DecidesCapacityOverAllProjects) {
  world.NewVm("key-1", "web");
  world.project.value = "other";
  auto submission = world.Create("key-2", {"web"});
  std::get<ports::CreateVms>(submission.change).capacity = {1, 1000, 1'000'000, 1000};
  EXPECT_EQ(WhyDeclined(world.Accept(submission)), DeclineReason::kNoCapacity);
}

TEST_P(LedgerContract, TakesABatchOfVmsWholeOrNotAtAll) {
  world.NewVm("key-1", "x-2");
  EXPECT_EQ(WhyDeclined(world.Accept(world.Create("key-2", {"x-0", "x-1", "x-2"}))),
            DeclineReason::kNameTaken);
  EXPECT_EQ(world.Usage().vms, 1);
  EXPECT_NE(As<Accepted>(world.Accept(world.Create("key-2", {"y-0", "y-1", "y-2"}))), nullptr);
  EXPECT_EQ(world.Usage(), (model::Resources{4, 4, 4 * 512, 4 * 3}));
}

TEST_P(LedgerContract, RefusesWorkBeyondTheBacklog) {
  for (int i = 0; i < 2; ++i) world.NewVm(fmt::format("key-{}", i), fmt::format("vm-{}", i));
  auto submission = world.Create("key-2", {"vm-2"});
  submission.max_backlog = 2;
  EXPECT_EQ(WhyDeclined(world.Accept(submission)), DeclineReason::kBacklogFull);
  world.MakeReady();
  EXPECT_NE(As<Accepted>(world.Accept(submission)), nullptr);
}

TEST_P(LedgerContract, ANameIsFreeAgainOnceItsVmIsDeleted) {
  const auto vm = world.NewVm("key-1", "web");
  world.MakeReady();
  EXPECT_EQ(WhyDeclined(world.Accept(world.Create("key-2", {"web"}))), DeclineReason::kNameTaken);
  world.MustAccept(world.Delete("", vm.id));
  world.MakeDeleted();
  EXPECT_NE(As<Accepted>(world.Accept(world.Create("key-2", {"web"}))), nullptr);
}

TEST_P(LedgerContract, DeleteMarksTheVmAndASecondDeleteJoins) {
  const auto vm = world.NewVm("key-1", "web");
  const auto deletion = world.Delete("key-d", vm.id);
  const auto outcome = world.Accept(deletion);
  ASSERT_NE(As<Accepted>(outcome), nullptr);
  const auto marked = world.Vm(vm.id);
  EXPECT_EQ(marked.state, model::VmState::kDeleting);
  EXPECT_EQ(marked.delete_operation, deletion.operation.id);
  EXPECT_EQ(marked.version, 2);
  const auto joined = world.Accept(world.Delete("", vm.id));
  ASSERT_NE(As<Joined>(joined), nullptr);
  EXPECT_EQ(As<Joined>(joined)->operation->id, deletion.operation.id);
  EXPECT_EQ(As<Joined>(joined)->vm.version, 2);
}

TEST_P(LedgerContract, ChangesOfVmsAreDeclinedWithTheirReason) {
  const auto vm = world.NewVm("key-1", "web");
  world.NewVm("key-2", "db");
  EXPECT_EQ(WhyDeclined(world.Accept(world.Delete("", model::VmId{world.NewId()}))),
            DeclineReason::kVmNotFound);
  const auto not_ready = world.Accept(world.Stop("key-s", vm.id));
  EXPECT_EQ(WhyDeclined(not_ready), DeclineReason::kWrongState);
  EXPECT_EQ(As<ports::Declined>(not_ready)->vm_state, model::VmState::kPending);
  EXPECT_EQ(WhyDeclined(world.Accept(world.Rename("", vm.id, "db"))), DeclineReason::kNameTaken);
  auto stale = world.Delete("", vm.id);
  std::get<ports::DeleteVm>(stale.change).if_version = 7;
  EXPECT_EQ(WhyDeclined(world.Accept(stale)), DeclineReason::kStaleVersion);
  world.project.value = "other";
  EXPECT_EQ(WhyDeclined(world.Accept(world.Delete("", vm.id))), DeclineReason::kVmNotFound);
  EXPECT_EQ(world.Vm(vm.id).version, 1);
}

TEST_P(LedgerContract, PowerSetsWhatIsDesiredOfAReadyVm) {
  const auto vm = world.NewVm("key-1", "web");
  world.MakeReady();
  const auto before = world.Vm(vm.id);
  ASSERT_NE(As<Accepted>(world.Accept(world.Stop("key-s", vm.id))), nullptr);
  EXPECT_EQ(world.Vm(vm.id).desired, model::Desired::kStopped);
  EXPECT_EQ(world.Vm(vm.id).version, before.version + 1);
  world.MustAccept(world.Delete("", vm.id));
  EXPECT_EQ(WhyDeclined(world.Accept(world.Stop("", vm.id))), DeclineReason::kWrongState);
}

TEST_P(LedgerContract, AnUpdateIsDoneAtOnceAndRecordedOnlyWithAKey) {
  const auto vm = world.NewVm("key-1", "web");
  const auto bare = world.Accept(world.Rename("", vm.id, "www"));
  ASSERT_NE(As<Accepted>(bare), nullptr);
  EXPECT_EQ(As<Accepted>(bare)->operation.sequence, 0);
  EXPECT_EQ(world.Vm(vm.id).name, "www");
  EXPECT_EQ(world.Vm(vm.id).version, 2);

  const auto keyed = world.Rename("key-u", vm.id, "www2");
  ASSERT_NE(As<Accepted>(world.Accept(keyed)), nullptr);
  const auto record = world.Operation(keyed.operation.id);
  EXPECT_EQ(record.state, model::OperationState::kSucceeded);
  EXPECT_EQ(record.finished, world.clock.Now());
  ASSERT_EQ(record.items.size(), 1u);
  EXPECT_EQ(record.items.front().subject, vm.id.value);
  world.MustAccept(world.Rename("", vm.id, "www3"));
  const auto replay = world.Accept(keyed);
  ASSERT_NE(As<Known>(replay), nullptr);
  EXPECT_EQ(As<Known>(replay)->vms.front().name, "www3");
  EXPECT_EQ(world.ledger->Totals()->unfinished, 1);
}

TEST_P(LedgerContract, EventsOfASubmissionAreCommittedWithItAndOnlyThen) {
  auto submission = world.Create("key-1", {"web"});
  model::Event event;
  event.id = world.NewId();
  event.type = "operation.accepted";
  event.project = world.project;
  event.subject = "x";
  event.data = "{}";
  submission.events = {event};
  world.MustAccept(submission);
  ASSERT_NE(As<Known>(world.Accept(submission)), nullptr);
  const auto events = world.ledger->Outbox(10);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().id, event.id);
  EXPECT_EQ(events->front().at, world.clock.Now());
  EXPECT_EQ(world.ledger->Totals()->outbox, 1);
}

// report 22, report 37
TEST_P(LedgerContract, OfManyRacingFirstsOfOneKeyOneIsAcceptedAndAllGetIt) {
  constexpr int kRacers = 16;
  std::vector<ports::Submission> submissions;
  for (int i = 0; i < kRacers; ++i) submissions.push_back(world.Create("key-1", {"web"}));
  std::vector<std::optional<ports::AcceptOutcome>> outcomes(kRacers);
  std::atomic<int> waiting = kRacers;
  {
    std::vector<std::unique_ptr<Thread>> racers;
    for (int i = 0; i < kRacers; ++i) {
      racers.push_back(world.threads->Spawn("racer", [&, i](std::stop_token) {
        --waiting;
        while (waiting > 0) {
        }
        outcomes[i] = world.Accept(submissions[i]);
      }));
    }
  }
  std::set<model::OperationId> operations;
  int accepted = 0;
  for (const auto& outcome : outcomes) {
    if (const auto* first = As<Accepted>(*outcome)) {
      ++accepted;
      operations.insert(first->operation.id);
    } else {
      ASSERT_NE(As<Known>(*outcome), nullptr);
      operations.insert(As<Known>(*outcome)->operation.id);
    }
  }
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(operations.size(), 1u);
  EXPECT_EQ(world.Usage().vms, 1);
}

// report 121: two firsts of one key and one name.
TEST_P(LedgerContract, ARacerForItsOwnNameIsAnsweredByItsKey) {
  const std::vector<ports::Submission> batch = {world.Create("key-1", {"web"}),
                                                world.Create("key-1", {"web"})};
  const auto outcomes = world.ledger->Accept(batch);
  ASSERT_NE(As<Accepted>(outcomes[0]), nullptr);
  ASSERT_NE(As<Known>(outcomes[1]), nullptr);
  EXPECT_EQ(As<Known>(outcomes[1])->operation.id, batch[0].operation.id);
}

}  // namespace
}  // namespace vmonce::ledger
