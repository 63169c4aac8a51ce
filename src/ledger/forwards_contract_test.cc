// Host ports, on every adapter of the ledger.
#include <gmock/gmock.h>

#include <set>

#include "ledger/contract_world.h"

namespace vmonce::ledger {
namespace {

using model::HostPort;
using model::Protocol;
using ports::AdvanceOutcome;
using ports::DeclineReason;
using testing::ElementsAre;
using testing::IsEmpty;

class Forwards : public LedgerContract {
 protected:
  Forwards() {
    world.AddHost("one", kAmple);
    world.AddHost("two", kAmple);
  }

  ports::Submission Create(const std::string& name, std::vector<model::Forward> forwards) {
    ports::Submission submission = world.Create("key of " + name, {name});
    std::get<ports::CreateVms>(submission.change).vms.front().spec.forwards = std::move(forwards);
    return submission;
  }

  model::Operation Taken(const std::string& name, std::vector<model::Forward> forwards) {
    world.MustAccept(Create(name, std::move(forwards)));
    return world.TakeOne();
  }

  AdvanceOutcome Place(const model::Operation& operation, const char* host,
                       std::vector<HostPort> avoid = {}) {
    auto advance = World::Of(operation);
    ports::VmChange change;
    change.vm = SubjectOf(operation);
    change.place_on = model::HostId{host};
    change.reserve_ports = ports::PortPlan{{20'000, 20'002}, "127.0.0.1", std::move(avoid)};
    advance.changes = {change};
    return world.Record(advance);
  }

  static model::VmId SubjectOf(const model::Operation& operation) {
    return model::VmId{operation.items.front().subject};
  }

  std::vector<int> PortsOf(const model::Operation& operation) {
    std::vector<int> ports;
    for (const model::Forward& one : world.Vm(SubjectOf(operation)).forwards) {
      ports.push_back(one.host_port);
    }
    return ports;
  }

  std::vector<model::HostId> Users(int port) {
    return *world.ledger->HostsUsingPort({Protocol::kTcp, port});
  }
};

TEST_P(Forwards, AreReservedWithThePlaceAndReadBackWithTheVm) {
  const auto operation =
      Taken("a", {{.guest_port = 22}, {.guest_port = 53, .protocol = Protocol::kUdp}});
  const std::int64_t version = world.Vm(SubjectOf(operation)).version;
  ASSERT_EQ(Place(operation, "one"), AdvanceOutcome::kRecorded);
  const model::Vm vm = world.Vm(SubjectOf(operation));
  ASSERT_EQ(vm.forwards.size(), 2u);
  EXPECT_EQ(vm.forwards[0].host_address, "127.0.0.1");
  EXPECT_EQ(vm.forwards[1].protocol, Protocol::kUdp);
  EXPECT_GT(vm.version, version);
  EXPECT_THAT(Users(vm.forwards[0].host_port), ElementsAre(model::HostId{"one"}));
}

TEST_P(Forwards, NeverMeetOnOneHostAndEndWithTheRange) {
  const auto a = Taken("a", {{.guest_port = 22}, {.guest_port = 80}});
  const auto b = Taken("b", {{.guest_port = 22}});
  const auto c = Taken("c", {{.guest_port = 22}});
  ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
  ASSERT_EQ(Place(b, "one"), AdvanceOutcome::kRecorded);
  std::set<int> ports;
  for (const auto& one : {PortsOf(a), PortsOf(b)}) ports.insert(one.begin(), one.end());
  EXPECT_EQ(ports, (std::set<int>{20'000, 20'001, 20'002}));
  EXPECT_EQ(Place(c, "one"), AdvanceOutcome::kPortTaken);
  EXPECT_THAT(PortsOf(c), IsEmpty());
  EXPECT_FALSE(world.Vm(SubjectOf(c)).host.has_value());  // The whole record is undone.
  EXPECT_EQ(Place(c, "two"), AdvanceOutcome::kRecorded);
}

TEST_P(Forwards, StayWhenThePlaceIsRecordedAgain) {
  const auto a = Taken("a", {{.guest_port = 22}});
  ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
  const auto before = PortsOf(a);
  const std::int64_t version = world.Vm(SubjectOf(a)).version;
  ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
  EXPECT_EQ(PortsOf(a), before);
  EXPECT_EQ(world.Vm(SubjectOf(a)).version, version);
  EXPECT_EQ(world.Vm(SubjectOf(a)).forward_moves, 0);
}

TEST_P(Forwards, MoveAwayFromWhatIsToBeAvoided) {
  const auto a = Taken("a", {{.guest_port = 22}, {.guest_port = 80}});
  ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
  const auto before = PortsOf(a);
  ASSERT_EQ(Place(a, "one", {{Protocol::kTcp, before[0]}}), AdvanceOutcome::kRecorded);
  EXPECT_NE(PortsOf(a)[0], before[0]);
  EXPECT_NE(PortsOf(a)[0], before[1]);
  EXPECT_EQ(PortsOf(a)[1], before[1]);
  EXPECT_THAT(Users(before[0]), IsEmpty());
  EXPECT_EQ(world.Vm(SubjectOf(a)).forward_moves, 1);
}

TEST_P(Forwards, ThatWereAskedForByNumberAreThoseOrNone) {
  const auto a = Taken("a", {{.guest_port = 22, .host_port = 20'001}});
  ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
  EXPECT_THAT(PortsOf(a), ElementsAre(20'001));
  EXPECT_EQ(Place(a, "one", {{Protocol::kTcp, 20'001}}), AdvanceOutcome::kPortTaken);
  const auto b = Taken("b", {{.guest_port = 22, .host_port = 20'001}});
  EXPECT_EQ(Place(b, "one"), AdvanceOutcome::kPortTaken);
  EXPECT_EQ(Place(b, "two"), AdvanceOutcome::kRecorded);
  // Now it is taken on both.
  EXPECT_EQ(WhyDeclined(world.Accept(Create("c", {{.guest_port = 22, .host_port = 20'001}}))),
            DeclineReason::kPortTaken);
  // A host that takes nothing new is none where it is free.
  const auto other = Create("d", {{.guest_port = 22, .host_port = 20'002}});
  ASSERT_EQ(Place(Taken("e", {{.guest_port = 22, .host_port = 20'002}}), "one"),
            AdvanceOutcome::kRecorded);
  ASSERT_TRUE(world.ledger->SetHostState(model::HostId{"two"}, model::HostState::kDraining));
  EXPECT_EQ(WhyDeclined(world.Accept(other)), DeclineReason::kPortTaken);
}

TEST_P(Forwards, AskedForByNumberComeBeforeThoseThatMayBeAny) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = "a" + std::to_string(i);
    const auto a = Taken(name, {{.guest_port = 22}, {.guest_port = 80, .host_port = 20'000}});
    ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
    EXPECT_EQ(PortsOf(a)[1], 20'000);
    auto back = World::Of(a);
    ports::VmChange change;
    change.vm = SubjectOf(a);
    change.release_host = true;
    back.changes = {change};
    ASSERT_EQ(world.Record(back), AdvanceOutcome::kRecorded);
    EXPECT_THAT(PortsOf(a), IsEmpty());
    EXPECT_THAT(Users(20'000), IsEmpty());
  }
}

TEST_P(Forwards, MoveWithTheirVmToAnotherHost) {
  const auto a = Taken("a", {{.guest_port = 22, .host_port = 20'001}});
  ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
  ASSERT_EQ(Place(a, "two"), AdvanceOutcome::kNoRoom) << "the first host is not declared dead";
  ASSERT_TRUE(world.ledger->SetHostState(model::HostId{"one"}, model::HostState::kDead));
  ASSERT_EQ(Place(a, "two"), AdvanceOutcome::kRecorded);
  EXPECT_THAT(Users(20'001), ElementsAre(model::HostId{"two"}));
}

TEST_P(Forwards, AddressesAreKeptAsTheyWereObserved) {
  const auto a = Taken("a", {});
  ASSERT_EQ(Place(a, "one"), AdvanceOutcome::kRecorded);
  model::Vm vm = world.Vm(SubjectOf(a));
  ports::Observation seen;
  seen.vm = vm.id;
  seen.version = vm.version;
  seen.observed = vm.observed;
  seen.addresses = {"192.168.122.7", "fe80::1"};
  ASSERT_EQ(world.ledger->Observe({&seen, 1}), 1);
  vm = world.Vm(vm.id);
  EXPECT_THAT(vm.addresses, ElementsAre("192.168.122.7", "fe80::1"));
  seen.version = vm.version;
  seen.addresses.reset();
  ASSERT_EQ(world.ledger->Observe({&seen, 1}), 1);
  EXPECT_EQ(world.Vm(vm.id).addresses.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Forwards, Forwards, AllAdapters(), AdapterName);

}  // namespace
}  // namespace vmonce::ledger
