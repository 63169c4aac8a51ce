#include <set>

#include "ledger/contract_world.h"
#include "model/limits.h"

namespace vmonce::ledger {
namespace {

using model::VmState;

class Reads : public LedgerContract {};
INSTANTIATE_TEST_SUITE_P(Reads, Reads, AllAdapters(), AdapterName);

std::vector<std::string> NamesOf(const Result<ports::PageOf<model::Vm>>& page) {
  std::vector<std::string> names;
  for (const model::Vm& vm : page->rows) names.push_back(vm.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_P(Reads, PagesOfVmsAreNewestFirstAndCompleteWhileOthersAreMade) {
  for (int i = 0; i < 7; ++i) world.NewVm(fmt::format("key-{}", i), fmt::format("vm-{}", i));
  Names seen;
  ports::Page page{3, ""};
  for (int pages = 0; pages < 3; ++pages) {
    const auto answer = world.ledger->ListVms(world.project, {}, page);
    ASSERT_TRUE(answer.has_value());
    for (const std::string& name : NamesOf(answer)) seen.push_back(name);
    page.after = answer->next;
    world.NewVm(fmt::format("new-{}", pages), fmt::format("new-{}", pages));
  }
  EXPECT_EQ(seen, (Names{"vm-6", "vm-5", "vm-4", "vm-3", "vm-2", "vm-1", "vm-0"}));
  EXPECT_EQ(page.after, "");
}

TEST_P(Reads, PagesOfOperationsFollowTheAcceptSequence) {
  for (int i = 0; i < 5; ++i) world.NewVm(fmt::format("key-{}", i), fmt::format("vm-{}", i));
  ports::Page page{2, ""};
  std::vector<std::int64_t> seen;
  do {
    const auto answer = world.ledger->ListOperations(world.project, {}, page);
    ASSERT_TRUE(answer.has_value());
    for (const auto& operation : answer->rows) seen.push_back(operation.sequence);
    page.after = answer->next;
  } while (!page.after.empty());
  EXPECT_EQ(seen, (std::vector<std::int64_t>{5, 4, 3, 2, 1}));
}

TEST_P(Reads, ACursorThatIsNotOneOfTheListIsInvalid) {
  for (int i = 0; i < 3; ++i) world.NewVm(fmt::format("key-{}", i), fmt::format("vm-{}", i));
  const auto vms = world.ledger->ListVms(world.project, {}, {1, ""});
  for (const std::string& cursor : {std::string("x"), std::string("bzEyeA=="), vms->next}) {
    const auto page = world.ledger->ListOperations(world.project, {}, {1, cursor});
    ASSERT_FALSE(page.has_value()) << cursor;
    EXPECT_EQ(page.error().code, ErrorCode::kInvalid);
  }
  const auto operations = world.ledger->ListOperations(world.project, {}, {1, ""});
  for (const std::string& cursor : {std::string("djEy"), operations->next}) {
    const auto page = world.ledger->ListVms(world.project, {}, {1, cursor});
    ASSERT_FALSE(page.has_value()) << cursor;
    EXPECT_EQ(page.error().code, ErrorCode::kInvalid);
  }
}

TEST_P(Reads, APageHoldsAtMostWhatTheLimitAllows) {
  std::vector<ports::Submission> batch;
  for (int i = 0; i <= model::limits::kPageItems; ++i) {
    batch.push_back(world.Create(fmt::format("key-{}", i), {fmt::format("vm-{}", i)}));
  }
  world.ledger->Accept(batch);
  const auto page = world.ledger->ListVms(world.project, {}, {1'000'000, ""});
  EXPECT_EQ(page->rows.size(), static_cast<std::size_t>(model::limits::kPageItems));
  EXPECT_FALSE(page->next.empty());
}

TEST_P(Reads, FiltersOfVmsNarrowTheList) {
  world.NewVm("key-1", "a");
  world.MakeReady();
  const auto gone = world.NewVm("key-2", "b");
  world.MakeReady();
  world.MustAccept(world.Delete("", gone.id));
  world.MakeDeleted();
  world.NewVm("key-3", "b");
  auto labelled = world.Create("key-4", {"d"});
  std::get<ports::CreateVms>(labelled.change).vms.front().labels = {{"a\"b", "c'd"}, {"n", "1"}};
  world.MustAccept(labelled);
  const auto list = [&](const ports::VmFilter& filter) {
    return NamesOf(world.ledger->ListVms(world.project, filter, {}));
  };
  EXPECT_EQ(list({}), (Names{"d", "b", "a"}));
  EXPECT_EQ(list({.with_deleted = true}), (Names{"d", "b", "b", "a"}));
  EXPECT_EQ(list({.name = "b"}), (Names{"b"}));
  EXPECT_EQ(list({.name = "b", .with_deleted = true}), (Names{"b", "b"}));
  EXPECT_EQ(list({.name = "B"}), (Names{}));
  EXPECT_EQ(list({.state = VmState::kReady}), (Names{"a"}));
  EXPECT_EQ(list({.state = VmState::kDeleted}), (Names{"b"}));
  EXPECT_EQ(list({.label = std::pair("a\"b", "c'd")}), (Names{"d"}));
  EXPECT_EQ(list({.label = std::pair("n", "2")}), (Names{}));
  EXPECT_EQ(list({.key_hash = Sha256("key-2")}), (Names{"b"}));
  EXPECT_EQ(list({.key_hash = Sha256("no such key")}), (Names{}));
  world.project.value = "other";
  EXPECT_EQ(list({.with_deleted = true}), (Names{}));
}

TEST_P(Reads, FiltersOfOperationsNarrowTheList) {
  const auto vm = world.NewVm("key-1", "a");
  world.NewVm("key-2", "b");
  world.MakeReady();
  const auto stop = world.Stop("key-s", vm.id);
  world.MustAccept(stop);
  const auto count = [&](const ports::OperationFilter& filter) {
    return world.ledger->ListOperations(world.project, filter, {})->rows.size();
  };
  EXPECT_EQ(count({}), 3u);
  EXPECT_EQ(count({.key_hash = Sha256("key-s")}), 1u);
  EXPECT_EQ(count({.state = model::OperationState::kSucceeded}), 2u);
  EXPECT_EQ(count({.state = model::OperationState::kAccepted}), 1u);
  EXPECT_EQ(count({.kind = model::OperationKind::kStop}), 1u);
  EXPECT_EQ(count({.vm = vm.id}), 2u);
}

// report 7
TEST_P(Reads, AKeyFindsItsRecordWithoutPosting) {
  const auto vm = world.NewVm("key-1", "a");
  const auto found = world.ledger->FindByKey(world.project, Sha256("key-1"));
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ(std::get<ports::Known>(**found).vms.front().id, vm.id);
  EXPECT_FALSE(world.ledger->FindByKey(world.project, Sha256("key-2"))->has_value());
  EXPECT_FALSE(world.ledger->FindByKey({"other"}, Sha256("key-1"))->has_value());
}

TEST_P(Reads, WhatIsNotThereIsAbsentAndNotAnError) {
  EXPECT_FALSE(world.ledger->GetVm(model::VmId{world.NewId()})->has_value());
  EXPECT_FALSE(world.ledger->GetOperation(model::OperationId{world.NewId()})->has_value());
  EXPECT_TRUE(world.ledger->VmsOf(model::OperationId{world.NewId()})->empty());
  EXPECT_TRUE(world.ledger->Timeline(model::OperationId{world.NewId()})->empty());
  EXPECT_FALSE(world.ledger->NextDue()->has_value());
  EXPECT_EQ(world.Usage(), model::Resources{});
  EXPECT_TRUE(world.ledger->Ping().has_value());
  EXPECT_EQ(world.ledger->Id().value.size(), 12u);
}

TEST_P(Reads, TotalsTellTheOldestOfWhatWaits) {
  world.NewVm("key-1", "a");
  const Time first = world.clock.Now();
  world.clock.Advance(Milliseconds(5));
  auto submission = world.Create("key-2", {"b"});
  submission.events.resize(2);
  world.MustAccept(submission);
  const auto totals = world.ledger->Totals();
  EXPECT_EQ(totals->unfinished, 2);
  EXPECT_EQ(totals->operations_in_state.at("accepted"), 2);
  EXPECT_EQ(totals->oldest_unfinished, first);
  EXPECT_EQ(totals->outbox, 2);
  EXPECT_EQ(totals->oldest_event, world.clock.Now());
}

TEST_P(Reads, AHostKeepsItsStateAndReservationsWhenItIsPutAgain) {
  auto host = world.AddHost("h", {1, 1, 512, 10});
  ASSERT_TRUE(world.ledger->MarkRegistered(host.id));
  ASSERT_TRUE(world.ledger->SetHostState(host.id, model::HostState::kDraining));
  host.uri = "qemu:///embed?root=/x";
  host.capacity = {2, 2, 1024, 20};
  host.reserved = {9, 9, 9, 9};
  ASSERT_TRUE(world.ledger->PutHost(host));
  const auto hosts = world.ledger->Hosts();
  ASSERT_EQ(hosts->size(), 1u);
  EXPECT_EQ(hosts->front().uri, host.uri);
  EXPECT_EQ(hosts->front().capacity, host.capacity);
  EXPECT_EQ(hosts->front().reserved, model::Resources{});
  EXPECT_TRUE(hosts->front().is_registered);
  EXPECT_EQ(hosts->front().state, model::HostState::kDraining);
  EXPECT_EQ(world.ledger->MarkRegistered({"no"}).error().code, ErrorCode::kNotFound);
}

TEST_P(Reads, AnObservationIsWrittenOnlyWhileItsVersionStands) {
  const auto vm = world.NewVm("key-1", "a");
  world.MakeReady();
  const auto before = world.Vm(vm.id);
  ports::Observation seen;
  seen.vm = vm.id;
  seen.version = before.version;
  seen.observed = model::Observed::kAbsent;
  seen.state = VmState::kMissing;
  seen.events.resize(1);
  EXPECT_EQ(world.ledger->Observe(std::span(&seen, 1)).value(), 1);
  EXPECT_EQ(world.Vm(vm.id).state, VmState::kMissing);
  EXPECT_EQ(world.Vm(vm.id).version, before.version + 1);
  EXPECT_EQ(world.ledger->Observe(std::span(&seen, 1)).value(), 0);
  EXPECT_EQ(world.ledger->Outbox(10)->size(), 1u);
  seen.version = before.version + 1;
  seen.events.clear();
  EXPECT_EQ(world.ledger->Observe(std::span(&seen, 1)).value(), 1);
  EXPECT_EQ(world.Vm(vm.id).version, before.version + 1);  // Nothing new was seen.
}

TEST_P(Reads, VmsOnAHostAreThoseNotDeletedAndThoseAskedForByName) {
  world.AddHost("h", kAmple);
  const auto here = world.NewVm("key-1", "a");
  const auto elsewhere = world.NewVm("key-2", "b");
  for (const auto& operation : world.Take()) {
    auto advance = World::Of(operation);
    ports::VmChange change;
    change.vm = model::VmId{operation.items.front().subject};
    if (change.vm == here.id) change.place_on = model::HostId{"h"};
    advance.changes = {change};
    world.Record(advance);
  }
  const model::VmId stranger{world.NewId()};
  const std::vector<model::VmId> also = {here.id, elsewhere.id, stranger};
  const auto vms = world.ledger->VmsOnHost({"h"}, also);
  ASSERT_EQ(vms->size(), 2u);
  EXPECT_EQ(vms->front().id, here.id);
  EXPECT_EQ(vms->back().id, elsewhere.id);
}

// report 116
TEST_P(Reads, StraysCountUpWhileTheyAreSeenAndAreForgottenOtherwise) {
  const model::VmId a{world.NewId()};
  const model::VmId b{world.NewId()};
  const std::vector<model::VmId> both = {b, a};
  EXPECT_EQ(world.ledger->NoteStrays({"h"}, both)->size(), 2u);
  const Time first = world.clock.Now();
  ASSERT_TRUE(world.ledger->MarkQuarantined({"h"}, a));
  world.clock.Advance(Milliseconds(1000));
  const auto again = world.ledger->NoteStrays({"h"}, std::span(&a, 1));
  ASSERT_EQ(again->size(), 1u);
  EXPECT_EQ(again->front().vm, a);
  EXPECT_EQ(again->front().sightings, 2);
  EXPECT_EQ(again->front().first_seen, first);
  EXPECT_TRUE(again->front().is_quarantined);
  const auto third = world.ledger->NoteStrays({"h"}, both);
  EXPECT_EQ(third->at(0).sightings, 3);
  EXPECT_EQ(third->at(1).sightings, 1);
  EXPECT_EQ(world.ledger->NoteStrays({"other"}, both)->front().sightings, 1);
}

}  // namespace
}  // namespace vmonce::ledger
