// Ways into a VM, told as plays: host ports are reserved before anything happens, stay through
// every crash, give way to strangers' programs, and come back when nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using model::OperationState;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

model::CreateIntent Intent(const std::string& name, std::vector<model::Forward> forwards,
                           int count = 1) {
  model::CreateIntent intent;
  intent.name = name;
  intent.image = "tiny";
  intent.count = count;
  intent.forwards = std::move(forwards);
  return intent;
}

model::VmId MadeBy(const service::Outcome& answer) {
  EXPECT_TRUE(answer.has_value());
  return answer ? answer->vms.front().id : model::VmId{};
}

// What the machine listens for is what the row says.
void ExpectListening(World& world, const model::VmId& id) {
  const auto domain = world.host().Find(id);
  ASSERT_TRUE(domain.has_value());
  EXPECT_EQ(domain->power, model::Observed::kRunning);
  EXPECT_EQ(domain->forwards, world.VmRow(id).forwards);
}

std::vector<model::HostId> Users(World& world, int port) {
  const auto hosts = world.ledger().HostsUsingPort({model::Protocol::kTcp, port});
  EXPECT_TRUE(hosts.has_value());
  return hosts.value_or(std::vector<model::HostId>());
}

TEST(Forward, GivesEveryVmAPortOfItsOwnFromTheRange) {
  World world;
  const service::Outcome answer =
      world.Create("key-1", Intent("web", {{.guest_port = 22}, {.guest_port = 80}}, 3));
  world.RunUntilQuiet();
  std::set<int> ports;
  for (const model::Vm& vm : answer->vms) {
    ExpectListening(world, vm.id);
    for (const model::Forward& forward : world.VmRow(vm.id).forwards) {
      EXPECT_GE(forward.host_port, 20'000);
      EXPECT_LE(forward.host_port, 20'099);
      EXPECT_EQ(forward.host_address, "127.0.0.1");
      ports.insert(forward.host_port);
    }
  }
  EXPECT_EQ(ports.size(), 6u);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Forward, ReservesThePortBeforeAnyEffect) {
  World world;
  int reserved = 0;
  service::Outcome answer;
  world.faults().OnCall(SimulatedCall::kCreateDisk, [&] {
    reserved = static_cast<int>(world.VmRow(MadeBy(answer)).forwards.size());
  });
  answer = world.Create("key-1", Intent("web", {{.guest_port = 22}}));
  world.RunUntilQuiet();
  EXPECT_EQ(reserved, 1);
}

TEST(Forward, KeepsThePortThroughACrashAroundEveryPortCall) {
  int crashes = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      World world;
      const model::VmId vm = MadeBy(world.Create("key-1", Intent("web", {{.guest_port = 22}})));
      world.crash().Arm(call, when);
      world.RunUntilQuiet();
      EXPECT_EQ(world.VmRow(vm).state, VmState::kReady) << "call " << call;
      EXPECT_EQ(world.VmRow(vm).forward_moves, 0) << "call " << call;
      ExpectListening(world, vm);
      EXPECT_EQ(world.Audit(), "") << "call " << call;
      if (!world.crash().has_fired()) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 11);
}

TEST(Forward, AvoidsWhatStrangersHaveAlready) {
  World world({.forward_ports = {20'000, 20'003}});
  for (const int port : {20'000, 20'001, 20'003}) {
    world.host().TakePort({model::Protocol::kTcp, port});
  }
  const model::VmId vm = MadeBy(world.Create("key-1", Intent("web", {{.guest_port = 22}})));
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(vm).forwards.at(0).host_port, 20'002);
  EXPECT_EQ(world.VmRow(vm).forward_moves, 0);
  ExpectListening(world, vm);
}

TEST(Forward, TakesAnotherPortWhenAStrangerTookItMeanwhile) {
  World world({.forward_ports = {20'000, 20'009}});
  service::Outcome answer;
  int first = 0;
  world.faults().OnCall(SimulatedCall::kDefine, [&] {
    if (first != 0) return;
    first = world.VmRow(MadeBy(answer)).forwards.at(0).host_port;
    world.host().TakePort({model::Protocol::kTcp, first});
  });
  answer = world.Create("key-1", Intent("web", {{.guest_port = 22}}));
  world.RunUntilQuiet();
  const model::Vm vm = world.VmRow(MadeBy(answer));
  EXPECT_NE(first, 0);
  EXPECT_EQ(vm.state, VmState::kReady);
  EXPECT_NE(vm.forwards.at(0).host_port, first);
  EXPECT_EQ(vm.forward_moves, 1);
  ExpectListening(world, vm.id);
  EXPECT_TRUE(Users(world, first).empty());
  EXPECT_THAT(world.Timeline(answer->operation->id), testing::Contains("rewound"));
  EXPECT_EQ(world.Audit(), "");
}

TEST(Forward, TakesAnotherPortAlsoWhenItCrashesAroundEveryCallOfThat) {
  for (int call = 1; call < 40; ++call) {
    World world({.forward_ports = {20'000, 20'009}});
    service::Outcome answer;
    int first = 0;
    world.faults().OnCall(SimulatedCall::kDefine, [&] {
      if (first != 0) return;
      first = world.VmRow(MadeBy(answer)).forwards.at(0).host_port;
      world.host().TakePort({model::Protocol::kTcp, first});
    });
    answer = world.Create("key-1", Intent("web", {{.guest_port = 22}}));
    world.crash().Arm(call, CrashPoint::When::kAfter);
    world.RunUntilQuiet();
    const model::Vm vm = world.VmRow(MadeBy(answer));
    EXPECT_EQ(vm.state, VmState::kReady) << "call " << call;
    EXPECT_NE(vm.forwards.at(0).host_port, first) << "call " << call;
    ExpectListening(world, vm.id);
    EXPECT_EQ(world.Audit(), "") << "call " << call;
  }
}

TEST(Forward, GivesUpForAPassingCauseWhenStrangersKeepTakingThePort) {
  World world({.forward_ports = {20'000, 20'099}});
  service::Outcome answer;
  world.faults().OnCall(SimulatedCall::kStart, [&] {
    const int port = world.VmRow(MadeBy(answer)).forwards.at(0).host_port;
    world.host().TakePort({model::Protocol::kTcp, port});
  });
  answer = world.Create("key-1", Intent("web", {{.guest_port = 22}}));
  world.RunUntilQuiet();
  const model::Operation failed = world.OperationRow(answer->operation->id);
  EXPECT_EQ(failed.state, OperationState::kFailed);
  EXPECT_EQ(failed.failure->code, "host_port_taken");
  EXPECT_TRUE(failed.failure->passing);
  EXPECT_TRUE(world.VmRow(MadeBy(answer)).forwards.empty());
  EXPECT_EQ(world.Audit(), "");
  world.faults().OnCall(SimulatedCall::kStart, [] {});
  const service::Outcome again = world.Create("key-1", Intent("web", {{.guest_port = 22}}));
  ASSERT_TRUE(again.has_value());
  world.RunUntilQuiet();
  ExpectListening(world, MadeBy(answer));
}

TEST(Forward, AFixedPortThatAnotherVmHasIsRefusedAndTheKeyStaysFree) {
  World world;
  const model::Forward fixed{.guest_port = 22, .host_port = 20'042};
  const model::VmId first = MadeBy(world.Create("key-1", Intent("web", {fixed})));
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(first).forwards.at(0).host_port, 20'042);
  const service::Outcome refused = world.Create("key-2", Intent("db", {fixed}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "host_port_taken");
  const service::Outcome mended = world.Create("key-2", Intent("db", {{.guest_port = 22}}));
  ASSERT_TRUE(mended.has_value());
  EXPECT_FALSE(mended->is_replay);
  world.RunUntilQuiet();
  ExpectListening(world, MadeBy(mended));
}

TEST(Forward, OfTwoThatAskForOnePortAtOnceOneGetsItAndTheOtherSaysWhy) {
  World world;
  const model::Forward fixed{.guest_port = 22, .host_port = 20'042};
  const service::Outcome a = world.Create("key-1", Intent("a", {fixed}));
  const service::Outcome b = world.Create("key-2", Intent("b", {fixed}));
  ASSERT_TRUE(a && b);
  world.RunUntilQuiet();
  int failed = 0;
  for (const service::Outcome* one : {&a, &b}) {
    const model::Operation row = world.OperationRow((*one)->operation->id);
    if (row.state == OperationState::kSucceeded) continue;
    ++failed;
    EXPECT_EQ(row.failure->code, "host_port_taken");
    EXPECT_TRUE(row.failure->passing);
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Forward, AFixedPortThatAStrangerHasFailsForAPassingCause) {
  World world;
  world.host().TakePort({model::Protocol::kTcp, 20'042});
  const auto intent = Intent("web", {{.guest_port = 22, .host_port = 20'042}});
  const service::Outcome answer = world.Create("key-1", intent);
  world.RunUntilQuiet();
  const model::Operation failed = world.OperationRow(answer->operation->id);
  EXPECT_EQ(failed.state, OperationState::kFailed);
  EXPECT_EQ(failed.failure->code, "host_port_taken");
  EXPECT_EQ(world.Audit(), "");
  world.host().FreePort({model::Protocol::kTcp, 20'042});
  ASSERT_TRUE(world.Create("key-1", intent).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(MadeBy(answer)).forwards.at(0).host_port, 20'042);
  ExpectListening(world, MadeBy(answer));
}

TEST(Forward, TheSamePortOfTheOtherProtocolIsAnotherPort) {
  World world;
  const model::VmId tcp =
      MadeBy(world.Create("key-1", Intent("a", {{.guest_port = 53, .host_port = 20'042}})));
  const model::VmId udp = MadeBy(world.Create(
      "key-2",
      Intent("b", {{.guest_port = 53, .protocol = model::Protocol::kUdp, .host_port = 20'042}})));
  world.RunUntilQuiet();
  ExpectListening(world, tcp);
  ExpectListening(world, udp);
}

TEST(Forward, APortOutsideEveryRangeIsRefusedAtOnce) {
  World world;
  const service::Outcome refused =
      world.Create("key-1", Intent("web", {{.guest_port = 22, .host_port = 30'000}}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "network_not_offered");
}

TEST(Forward, IsGivenBackWhenTheVmIsDeletedAndWhenItsCreateFails) {
  World world;
  const auto intent = Intent("web", {{.guest_port = 22, .host_port = 20'042}});
  const model::VmId vm = MadeBy(world.Create("key-1", intent));
  world.RunUntilQuiet();
  EXPECT_EQ(Users(world, 20'042).size(), 1u);
  ASSERT_TRUE(world.Change(Kind::kDelete, vm).has_value());
  world.RunUntilQuiet();
  EXPECT_TRUE(world.VmRow(vm).forwards.empty());
  EXPECT_TRUE(Users(world, 20'042).empty());

  Fault refusal;
  refusal.instead = Error{ErrorCode::kRefused, "made up"};
  world.faults().Add(SimulatedCall::kDefine, refusal);
  const model::VmId failed = MadeBy(world.Create("key-2", intent));
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(failed).state, VmState::kFailed);
  EXPECT_TRUE(Users(world, 20'042).empty());
  EXPECT_EQ(world.Audit(), "");
}

TEST(Forward, StaysWithAVmThatIsStopped) {
  World world;
  const model::VmId vm = MadeBy(world.Create("key-1", Intent("web", {{.guest_port = 22}})));
  world.RunUntilQuiet();
  const auto before = world.VmRow(vm).forwards;
  ASSERT_TRUE(world.ForceStop(vm).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(vm).forwards, before);
  ASSERT_TRUE(world.Change(Kind::kStart, vm).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(vm).forwards, before);
  ExpectListening(world, vm);
}

TEST(Forward, AStartSaysWhichPortAStrangerHasTakenMeanwhileAndChangesNone) {
  World world;
  const model::VmId vm = MadeBy(world.Create("key-1", Intent("web", {{.guest_port = 22}})));
  world.RunUntilQuiet();
  ASSERT_TRUE(world.ForceStop(vm).has_value());
  world.RunUntilQuiet();
  const auto before = world.VmRow(vm).forwards;
  const model::HostPort port{model::Protocol::kTcp, before.at(0).host_port};
  world.host().TakePort(port);
  const service::Outcome start = world.Change(Kind::kStart, vm);
  ASSERT_TRUE(start.has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.OperationRow(start->operation->id).failure->code, "host_port_taken");
  EXPECT_EQ(world.VmRow(vm).forwards, before);
  world.host().FreePort(port);
  ASSERT_TRUE(world.Change(Kind::kStart, vm).has_value());
  world.RunUntilQuiet();
  ExpectListening(world, vm);
}

TEST(Forward, WhatNoHostOffersIsRefusedAndTheKeyStaysFree) {
  World world({.networks = {"lan"}});
  model::CreateIntent intent = Intent("web", {});
  intent.network = "dmz";
  const service::Outcome refused = world.Create("key-1", intent);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "network_not_offered");
  intent.network = "lan";
  const model::VmId vm = MadeBy(world.Create("key-1", intent));
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(vm).state, VmState::kReady);
}

TEST(Forward, TheAddressThatTheHostTellsIsShownAndForgottenWhenTheVmStops) {
  World world({.networks = {"lan"}});
  model::CreateIntent intent = Intent("web", {});
  intent.network = "lan";
  const model::VmId vm = MadeBy(world.Create("key-1", intent));
  world.RunUntilQuiet();
  world.Reconcile();
  EXPECT_TRUE(world.VmRow(vm).addresses.empty());
  auto domain = *world.host().Find(vm);
  domain.addresses = {"192.168.122.7"};
  world.host().Plant(domain);
  world.Reconcile();
  EXPECT_THAT(world.VmRow(vm).addresses, testing::ElementsAre("192.168.122.7"));
  const std::int64_t version = world.VmRow(vm).version;
  world.Reconcile();
  EXPECT_EQ(world.VmRow(vm).version, version);
  ASSERT_TRUE(world.ForceStop(vm).has_value());
  world.RunUntilQuiet();
  world.Reconcile();
  EXPECT_TRUE(world.VmRow(vm).addresses.empty());
}

}  // namespace
}  // namespace vmonce::node
