#include "ledger/contract_world.h"
#include "model/intent.h"
#include "ports/ledger_rebuild.h"

namespace vmonce::ledger {
namespace {

const model::HostId kHost{"local"};

class LedgerRebuildContract : public LedgerContract {
 protected:
  ports::LedgerRebuild& rows_ = dynamic_cast<ports::LedgerRebuild&>(*world.ledger);

  void SetUp() override { world.AddHost(kHost.value, kAmple); }

  // An ended create of one VM on the host, that the ledger does not know.
  ports::RebuiltOperation Unknown(const std::string& key, const std::string& name,
                                  std::int64_t sequence) {
    const ports::Submission submission = world.Create(key, {name});
    ports::RebuiltOperation rebuilt;
    rebuilt.operation = submission.operation;
    rebuilt.operation.sequence = sequence;
    rebuilt.operation.state = model::OperationState::kSucceeded;
    rebuilt.operation.finished = world.clock.Now();
    rebuilt.operation.items.front().phase = model::ItemPhase::kDone;
    rebuilt.vms = std::get<ports::CreateVms>(submission.change).vms;
    rebuilt.vms.front().state = model::VmState::kReady;
    rebuilt.vms.front().host = kHost;
    rebuilt.detail = "from a label";
    return rebuilt;
  }
  std::vector<std::string> Rewrite(const ports::RebuiltOperation& rebuilt) {
    const auto notes = rows_.Rewrite(rebuilt);
    EXPECT_TRUE(notes.has_value()) << notes.error().detail;
    return notes.value_or(std::vector<std::string>());
  }
};

INSTANTIATE_TEST_SUITE_P(Rebuild, LedgerRebuildContract, AllAdapters(), AdapterName);

TEST_P(LedgerRebuildContract, ReadsBackWhatWasWrittenWithItsReservations) {
  ports::RebuiltOperation rebuilt = Unknown("key", "web", 7);
  model::Vm& vm = rebuilt.vms.front();
  vm.spec.forwards = {{.guest_port = 22}};
  vm.forwards = {{.guest_port = 22, .host_port = 20'022, .host_address = "127.0.0.1"}};
  EXPECT_TRUE(Rewrite(rebuilt).empty());
  const model::Vm read = world.Vm(vm.id);
  EXPECT_EQ(read.state, model::VmState::kReady);
  EXPECT_EQ(read.spec, vm.spec);
  EXPECT_EQ(read.forwards, vm.forwards);
  EXPECT_EQ(read.host, kHost);
  EXPECT_EQ(world.Operation(rebuilt.operation.id).sequence, 7);
  EXPECT_EQ(world.Usage(), Demand(vm.spec));
  EXPECT_EQ(world.ReservedOn("local"), Demand(vm.spec));
  EXPECT_EQ(world.ledger->HostsUsingPort({model::Protocol::kTcp, 20'022})->size(), 1u);
  EXPECT_EQ(world.ledger->LiveKeys(world.project), 1);
  EXPECT_EQ(world.ledger->Timeline(rebuilt.operation.id)->back().event, "rebuilt");
  const auto found = world.ledger->FindByKey(world.project, Sha256("key"));
  ASSERT_TRUE(found && found->has_value());
  EXPECT_EQ(std::get<ports::Known>(**found).vms.front().id, vm.id);
}

TEST_P(LedgerRebuildContract, WrittenTwiceIsWrittenOnce) {
  const ports::RebuiltOperation rebuilt = Unknown("key", "web", 7);
  Rewrite(rebuilt);
  EXPECT_TRUE(Rewrite(rebuilt).empty());
  EXPECT_EQ(world.Usage(), Demand(rebuilt.vms.front().spec));
  EXPECT_EQ(world.ReservedOn("local"), Demand(rebuilt.vms.front().spec));
  EXPECT_EQ(world.ledger->LiveKeys(world.project), 1);
}

TEST_P(LedgerRebuildContract, TheNextAcceptNumberIsAboveTheRaisedOne) {
  ASSERT_TRUE(rows_.RaiseSequence(41).has_value());
  ASSERT_TRUE(rows_.RaiseSequence(7).has_value());
  EXPECT_EQ(world.ledger->Totals()->last_sequence, 41);
  const auto outcome = world.Accept(world.Create("key", {"web"}));
  EXPECT_EQ(As<ports::Accepted>(outcome)->operation.sequence, 42);
}

// What the ledger holds wins; the machine is known all the same, and each loss is told.
TEST_P(LedgerRebuildContract, ANameAKeyAPortAndANumberThatAreTakenAreToldAndLeftOut) {
  ports::RebuiltOperation first = Unknown("key", "web", 7);
  first.vms.front().forwards = {{.guest_port = 22, .host_port = 20'022, .host_address = "::"}};
  Rewrite(first);
  ports::RebuiltOperation second = Unknown("key", "web", 7);
  second.vms.front().forwards = first.vms.front().forwards;
  EXPECT_EQ(Rewrite(second).size(), 4u);
  const model::Vm vm = world.Vm(second.vms.front().id);
  EXPECT_EQ(vm.name, model::GeneratedName(vm.id));
  EXPECT_TRUE(vm.forwards.empty());
  const model::Operation operation = world.Operation(second.operation.id);
  EXPECT_FALSE(operation.key_hash.has_value());
  EXPECT_EQ(operation.sequence, 8);
  EXPECT_EQ(world.Operation(first.operation.id).key_hash, Sha256("key"));
  EXPECT_EQ(world.Vm(first.vms.front().id).name, "web");
  EXPECT_EQ(world.ReservedOn("local").vms, 2);
}

// A failed VM of a restored copy, whose machine was made since.
TEST_P(LedgerRebuildContract, GivesAFailedCreateItsReservationAgain) {
  const model::Vm made = world.NewVm("key", "web");
  world.MakeFailed(/*passing=*/true);
  ASSERT_EQ(world.Usage().vms, 0);
  ports::RebuiltOperation rebuilt;
  rebuilt.operation = world.Operation(made.operation);
  rebuilt.operation.state = model::OperationState::kAccepted;
  rebuilt.operation.finished.reset();
  rebuilt.operation.fence = model::Fence{1'000};
  rebuilt.vms = {world.Vm(made.id)};
  rebuilt.vms.front().state = model::VmState::kCreating;
  rebuilt.vms.front().holds_reservation = true;
  rebuilt.vms.front().host = kHost;
  Rewrite(rebuilt);
  EXPECT_EQ(world.Usage().vms, 1);
  EXPECT_EQ(world.ReservedOn("local").vms, 1);
  EXPECT_EQ(world.ledger->Totals()->unfinished, 1);
  EXPECT_EQ(rows_.Unfinished()->size(), 1u);
  EXPECT_EQ(world.TakeOne().fence.value, 1'001);
}

TEST_P(LedgerRebuildContract, RemembersWhichHostsWereNotRead) {
  ASSERT_TRUE(rows_.SetUnread(kHost, true).has_value());
  EXPECT_TRUE(world.ledger->Hosts()->front().is_unread);
  world.AddHost(kHost.value, kAmple);
  EXPECT_TRUE(world.ledger->Hosts()->front().is_unread) << "a registration is no reading";
  ASSERT_TRUE(rows_.SetUnread(kHost, false).has_value());
  EXPECT_FALSE(world.ledger->Hosts()->front().is_unread);
  EXPECT_EQ(rows_.SetUnread(model::HostId{"none"}, true).error().code, ErrorCode::kNotFound);
}

TEST(SqliteLedger, OnlyOneThatHoldsNothingBecomesAnother) {
  World world(kSqliteFile);
  const auto open = [&] {
    world.ledger.reset();
    SqliteLedgerOptions options;
    options.path = world.dir.File("ledger.db");
    options.become = model::LedgerId{"0123456789ab"};
    auto opened =
        SqliteLedger::Open(options, world.clock, *world.random, *world.threads, *world.logger);
    EXPECT_TRUE(opened.has_value());
    world.ledger = std::move(*opened);
    return world.ledger->Id().value;
  };
  EXPECT_EQ(open(), "0123456789ab");
  World used(kSqliteFile);
  const std::string id = used.ledger->Id().value;
  used.AddHost("local", kAmple);
  used.ledger.reset();
  SqliteLedgerOptions options;
  options.path = used.dir.File("ledger.db");
  options.become = model::LedgerId{"0123456789ab"};
  const auto opened =
      SqliteLedger::Open(options, used.clock, *used.random, *used.threads, *used.logger);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ((*opened)->Id().value, id);
}

}  // namespace
}  // namespace vmonce::ledger
