// A ledger that was lost, or restored from an older copy, is read back from the hosts.
#include <gtest/gtest.h>

#include "model/label.h"
#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using hypervisor::Fault;
using hypervisor::SimulatedCall;
using hypervisor::SimulatedDomain;
using model::HostId;
using model::HostState;
using model::Observed;
using model::OperationState;
using model::VmId;
using model::VmState;
using workflows::LedgerAge;
using Kind = service::ChangeRequest::Kind;

WorldOptions InAFile(std::vector<std::string> hosts = {"local"}) {
  WorldOptions options;
  options.hosts = std::move(hosts);
  options.has_ledger_file = true;
  return options;
}

struct Lab {
  explicit Lab(std::vector<std::string> hosts = {"local"}) : world(InAFile(std::move(hosts))) {}

  std::vector<VmId> Make(const std::string& key, const std::string& name, int count = 1) {
    const service::Outcome created = world.Create(key, name, count);
    std::vector<VmId> ids;
    if (!created) ADD_FAILURE() << created.error().code;
    if (!created) return ids;
    for (const model::Vm& vm : created->vms) ids.push_back(vm.id);
    return ids;
  }

  void Delete(const VmId& id) {
    ASSERT_TRUE(world.Change(Kind::kDelete, id).has_value());
    world.RunUntilQuiet();
  }

  // The same key again, as a client with a lost answer sends it; the ids it gets.
  std::vector<VmId> Again(const std::string& key, const std::string& name, int count = 1) {
    const service::Outcome answer = world.Create(key, name, count);
    std::vector<VmId> ids;
    if (!answer) ADD_FAILURE() << key << ": " << answer.error().code;
    if (!answer) return ids;
    EXPECT_TRUE(answer->is_replay) << key;
    for (const model::Vm& vm : answer->vms) ids.push_back(vm.id);
    return ids;
  }

  workflows::RebuildReport Rebuild(const workflows::RebuildOptions& options = {}) {
    const auto report = world.Rebuild(options);
    EXPECT_TRUE(report.has_value()) << report.error().detail;
    return report.value_or(workflows::RebuildReport{});
  }

  // The service starts, and finds nothing that it does not know.
  void Serve() {
    world.Restart();
    EXPECT_EQ(world.Age(), LedgerAge::kCurrent);
    world.RunUntilQuiet();
  }

  std::string CodeOf(const std::string& key, const std::string& name) {
    const service::Outcome answer = world.Create(key, name);
    return answer ? "taken" : answer.error().code;
  }

  World world;
};

void ExpectSameMachines(World& world, const std::vector<SimulatedDomain>& before) {
  const auto after = world.host().Domains();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i]);
}

// Before it is rebuilt, nothing is accepted or removed. Report 104, with every row gone.
TEST(Rebuild, ALostLedgerKnowsEveryMachineAndEveryKeyAgain) {
  Lab lab;
  World& world = lab.world;
  const auto web = lab.Make("key-1", "web");
  const auto batch = lab.Make("key-2", "db", 3);
  model::CreateIntent with_port;
  with_port.name = "ssh";
  with_port.image = "tiny";
  with_port.cpus = 2;
  with_port.memory_mib = 1'024;
  with_port.disk_gib = 7;
  with_port.forwards = {{.guest_port = 22}};
  const VmId ssh = world.Create("key-3", with_port)->vms.front().id;
  world.RunUntilQuiet();
  const model::Vm before = world.VmRow(ssh);
  const model::Operation operation = world.OperationRow(before.operation);
  const auto usage = world.ledger().Usage(model::ProjectId{"default"});
  const auto domains = world.host().Domains();

  lab.world.LoseLedger();
  EXPECT_FALSE(world.TryRestart().has_value());
  EXPECT_EQ(world.Age(), LedgerAge::kBehind);
  EXPECT_EQ(lab.CodeOf("key-1", "web"), "ledger_behind");
  EXPECT_EQ(lab.CodeOf("new", "new"), "ledger_behind");
  EXPECT_NE(world.Reconcile().problem, "");

  const auto report = lab.Rebuild();
  EXPECT_TRUE(report.IsWhole());
  EXPECT_EQ(report.machines, 5);
  EXPECT_EQ(report.vms, 5);
  EXPECT_EQ(report.operations, 3);
  ExpectSameMachines(world, domains);
  lab.Serve();
  EXPECT_EQ(lab.Again("key-1", "web"), web);
  EXPECT_EQ(lab.Again("key-2", "db", 3), batch);
  EXPECT_EQ(world.Create("key-3", with_port)->vms.front().id, ssh);
  const model::Vm after = world.VmRow(ssh);
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.spec.cpus, 2);
  EXPECT_EQ(after.spec.memory_mib, 1'024);
  EXPECT_EQ(after.spec.disk_gib, 7);
  EXPECT_EQ(after.spec.image.name, "tiny");
  EXPECT_EQ(after.mac, before.mac);
  EXPECT_EQ(after.forwards, before.forwards);
  EXPECT_EQ(after.state, VmState::kReady);
  const model::Operation known = world.OperationRow(before.operation);
  EXPECT_EQ(known.sequence, operation.sequence);
  EXPECT_EQ(known.state, OperationState::kSucceeded);
  EXPECT_EQ(known.accepted, operation.accepted);
  EXPECT_EQ(world.Timeline(before.operation).back(), "rebuilt");
  EXPECT_EQ(*world.ledger().Usage(model::ProjectId{"default"}), *usage);
  EXPECT_EQ(world.Reconcile().strays, 0);
  ExpectSameMachines(world, domains);
  // The books are right: what was found may be deleted, and its port and name are free again.
  for (const VmId& id : {web.front(), batch[0], batch[1], batch[2], ssh}) lab.Delete(id);
  EXPECT_EQ(world.Audit(), "");
  EXPECT_EQ(world.ledger().Usage(model::ProjectId{"default"})->vms, 0);
  const VmId anew = world.Create("key-4", with_port)->vms.front().id;
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(anew).state, VmState::kReady);
  EXPECT_GT(world.OperationRow(world.VmRow(anew).operation).sequence, operation.sequence);
}

TEST(Rebuild, AnotherBodyUnderAnOldKeyIsRefusedThoughTheRequestIsLost) {
  Lab lab;
  lab.Make("key-1", "web");
  lab.world.RunUntilQuiet();
  lab.world.LoseLedger();
  lab.Rebuild();
  lab.Serve();
  const service::Outcome other = lab.world.Create("key-1", "other");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, "idempotency_key_reused");
  EXPECT_TRUE(other.error().differing.empty());
  EXPECT_NE(other.error().detail.find("rebuilt"), std::string::npos) << other.error().detail;
}

TEST(Rebuild, OfABatchWhatIsNotThereIsToldAsDeletedAndNeverMadeAgain) {
  Lab lab;
  World& world = lab.world;
  const auto batch = lab.Make("key-1", "db", 3);
  world.RunUntilQuiet();
  lab.Delete(batch[1]);
  world.LoseLedger();
  EXPECT_EQ(lab.Rebuild().vms, 2);
  lab.Serve();
  const service::Outcome again = world.Create("key-1", "db", 3);
  ASSERT_TRUE(again.has_value());
  ASSERT_EQ(again->vms.size(), 3u);
  EXPECT_EQ(again->vms[0].id, batch[0]);
  EXPECT_EQ(again->vms[1].state, VmState::kDeleted);
  EXPECT_EQ(again->vms[1].name, "db-1");
  EXPECT_EQ(again->vms[1].failure->code, "vm_missing");
  EXPECT_EQ(again->vms[2].id, batch[2]);
  EXPECT_EQ(again->operation->state, OperationState::kSucceeded);
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Domains().size(), 2u);
  EXPECT_EQ(world.Audit(), "");
}

// What a stop left off stays off; what was never started is started, once.
TEST(Rebuild, AMachineThatIsOffStaysOffUnlessItNeverRan) {
  Lab lab;
  World& world = lab.world;
  const VmId stopped = lab.Make("key-1", "stopped").front();
  world.RunUntilQuiet();
  ASSERT_TRUE(world.Change(Kind::kStop, stopped).has_value());
  world.RunUntilQuiet();
  const VmId half = lab.Make("key-2", "half").front();
  // The process dies right after the define.
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "down"};
  world.faults().Add(SimulatedCall::kStart, down);
  while (world.Step()) {
  }
  ASSERT_EQ(world.faults().fired(), 1);
  ASSERT_EQ(world.host().Find(half)->starts, 0);
  world.LoseLedger();
  lab.Rebuild();
  lab.Serve();
  EXPECT_EQ(world.VmRow(stopped).desired, model::Desired::kStopped);
  EXPECT_EQ(world.VmRow(half).desired, model::Desired::kRunning);
  EXPECT_EQ(world.Reconcile().restarted, 1);
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Find(stopped)->power, Observed::kStopped);
  EXPECT_EQ(world.host().Find(half)->power, Observed::kRunning);
  EXPECT_EQ(world.host().Find(half)->starts, 1);
  EXPECT_EQ(lab.Again("key-2", "half").front(), half);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Rebuild, WhatAHostsRestartTookDownRunsAgainWhenThatIsAskedFor) {
  Lab lab;
  World& world = lab.world;
  const VmId id = lab.Make("key-1", "web").front();
  world.RunUntilQuiet();
  world.host().PowerOffAll();
  world.LoseLedger();
  workflows::RebuildOptions options;
  options.run_stopped = true;
  lab.Rebuild(options);
  lab.Serve();
  EXPECT_EQ(world.Reconcile().restarted, 1);
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Find(id)->power, Observed::kRunning);
}

// Creates, a batch and a delete came after the copy.
TEST(Rebuild, AnOlderCopyCatchesUpWithTheHosts) {
  Lab lab;
  World& world = lab.world;
  const VmId old = lab.Make("key-1", "old").front();
  const VmId gone = lab.Make("key-2", "gone").front();
  world.RunUntilQuiet();
  world.KeepCopy();
  const VmId later = lab.Make("key-3", "later").front();
  const auto batch = lab.Make("key-4", "db", 2);
  world.RunUntilQuiet();
  lab.Delete(gone);
  const auto domains = world.host().Domains();
  world.RestoreCopy();
  EXPECT_FALSE(world.TryRestart().has_value());
  EXPECT_EQ(lab.CodeOf("key-3", "later"), "ledger_behind");
  const auto report = lab.Rebuild();
  EXPECT_EQ(report.vms, 3);
  EXPECT_EQ(report.operations, 2);
  lab.Serve();
  EXPECT_EQ(lab.Again("key-1", "old").front(), old);
  EXPECT_EQ(lab.Again("key-3", "later").front(), later);
  EXPECT_EQ(lab.Again("key-4", "db", 2), batch);
  // Never made again, whoever asks.
  EXPECT_EQ(lab.Again("key-2", "gone").front(), gone);
  EXPECT_EQ(world.Reconcile().missing, 1);
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(gone).state, VmState::kMissing);
  ExpectSameMachines(world, domains);
  const VmId anew = lab.Make("key-5", "anew").front();
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(anew).state, VmState::kReady);
  EXPECT_EQ(world.host().Domains().size(), domains.size() + 1);
}

// The label shows a fence that the copy's worker would not reach in days of take-overs.
TEST(Rebuild, ACreateThatWasUnderWayInTheCopyIsAdoptedAboveTheLabelsFence) {
  Lab lab;
  World& world = lab.world;
  const service::Outcome created = world.Create("key-1", "web");
  const VmId id = created->vms.front().id;
  world.KeepCopy();
  world.RunUntilQuiet();
  SimulatedDomain domain = *world.host().Find(id);
  domain.label->fence.value += 1'000;
  world.host().Plant(domain);
  // Something that is ahead of the copy.
  lab.Make("key-2", "later");
  world.RunUntilQuiet();
  world.RestoreCopy();
  const auto report = lab.Rebuild();
  EXPECT_EQ(report.handed_back, 1);
  EXPECT_EQ(report.given_up, 0);
  lab.Serve();
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
  EXPECT_EQ(world.OperationRow(created->operation->id).state, OperationState::kSucceeded);
  EXPECT_EQ(world.host().Find(id)->starts, 1);
  EXPECT_EQ(world.host().Domains().size(), 2u);
  EXPECT_EQ(world.Audit(), "");
}

// It may have been made and deleted since: a machine that somebody deleted does not come back.
TEST(Rebuild, ACreateThatWasUnderWayInTheCopyAndIsNowhereFailsForGood) {
  Lab lab;
  World& world = lab.world;
  const VmId id = lab.Make("key-1", "web").front();
  world.KeepCopy();
  world.RunUntilQuiet();
  lab.Delete(id);
  lab.Make("key-2", "later");
  world.RunUntilQuiet();
  world.RestoreCopy();
  EXPECT_EQ(lab.Rebuild().given_up, 1);
  lab.Serve();
  EXPECT_EQ(world.VmRow(id).state, VmState::kFailed);
  EXPECT_EQ(lab.CodeOf("key-1", "web"), "vm_missing");
  world.RunUntilQuiet();
  EXPECT_EQ(world.host().Domains().size(), 1u);
  EXPECT_EQ(world.Audit(), "");
}

// It failed before the copy was made, and a retry had made it since.
TEST(Rebuild, ACreateThatHadFailedInTheCopyIsAdoptedWhenALaterAttemptMadeIt) {
  Lab lab;
  World& world = lab.world;
  Fault down;
  down.instead = Error{ErrorCode::kUnavailable, "down"};
  world.faults().Add(SimulatedCall::kDefine, down, 5);
  const VmId id = lab.Make("key-1", "web").front();
  world.RunUntilQuiet();
  ASSERT_EQ(world.VmRow(id).state, VmState::kFailed);
  world.KeepCopy();
  lab.Again("key-1", "web");
  world.RunUntilQuiet();
  ASSERT_EQ(world.VmRow(id).state, VmState::kReady);
  lab.Make("key-2", "later");
  world.RunUntilQuiet();
  const auto domains = world.host().Domains();
  world.RestoreCopy();
  EXPECT_EQ(lab.Rebuild().handed_back, 1);
  lab.Serve();
  EXPECT_EQ(lab.Again("key-1", "web").front(), id);
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
  EXPECT_EQ(world.host().Find(id)->starts, 1);
  EXPECT_EQ(world.host().Domains().size(), domains.size());
  EXPECT_EQ(world.Audit(), "");
}

// Of a ledger that is the newest, unfinished work is its workers' business.
TEST(Rebuild, ANewestLedgerIsLeftAsItIs) {
  Lab lab;
  World& world = lab.world;
  lab.Make("key-1", "done");
  world.RunUntilQuiet();
  const VmId id = lab.Make("key-2", "web").front();
  const auto report = lab.Rebuild();
  EXPECT_EQ(report.vms + report.handed_back + report.given_up, 0);
  EXPECT_TRUE(report.told.empty());
  lab.Serve();
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
  EXPECT_EQ(world.Audit(), "");
}

TEST(Rebuild, ADryRunTellsEverythingAndWritesNothing) {
  Lab lab;
  World& world = lab.world;
  lab.Make("key-1", "web");
  world.RunUntilQuiet();
  world.LoseLedger();
  workflows::RebuildOptions options;
  options.is_dry_run = true;
  const auto report = lab.Rebuild(options);
  EXPECT_EQ(report.vms, 1);
  EXPECT_EQ(report.told.size(), 1u);
  EXPECT_TRUE(world.ledger().Hosts()->empty());
  EXPECT_EQ(world.ledger().Totals()->last_sequence, 0);
  EXPECT_FALSE(world.TryRestart().has_value());
  EXPECT_EQ(lab.Rebuild().vms, 1);
  lab.Serve();
}

// Report 115: look-alike names and other ledgers' labels are strangers.
TEST(Rebuild, ReadsNoStrangersIn) {
  Lab lab;
  World& world = lab.world;
  const VmId id = lab.Make("key-1", "web").front();
  world.RunUntilQuiet();
  SimulatedDomain foreign = *world.host().Find(id);
  foreign.id.value.bytes[15] ^= 1;
  foreign.name = "vmonce-0123456789ab-x";
  foreign.label->ledger = model::LedgerId{"0123456789ab"};
  SimulatedDomain unlabelled = foreign;
  unlabelled.id.value.bytes[15] ^= 2;
  unlabelled.name = "theirs";
  unlabelled.label.reset();
  world.host().Plant(foreign);
  world.host().Plant(unlabelled);
  world.LoseLedger();
  EXPECT_EQ(lab.Rebuild().machines, 1);
  lab.Serve();
  EXPECT_EQ(*world.host().Find(foreign.id), foreign);
  EXPECT_EQ(*world.host().Find(unlabelled.id), unlabelled);
}

// Nobody can say which of the two is the operation's: neither is written, and no create is taken
// until a person has removed one.
TEST(Rebuild, TwoMachinesOfOneOperationAndIndexAreLeftToAPerson) {
  Lab lab({"a", "b"});
  World& world = lab.world;
  const VmId id = lab.Make("key-1", "web").front();
  world.RunUntilQuiet();
  const VmId fine = lab.Make("key-2", "fine").front();
  world.RunUntilQuiet();
  const bool is_on_a = world.host("a").Find(id).has_value();
  hypervisor::SimulatedHost& here = world.host(is_on_a ? "a" : "b");
  hypervisor::SimulatedHost& there = world.host(is_on_a ? "b" : "a");
  const SimulatedDomain domain = *here.Find(id);
  there.Plant(domain);
  world.LoseLedger();
  const auto report = lab.Rebuild();
  EXPECT_FALSE(report.IsWhole());
  ASSERT_EQ(report.open.size(), 1u);
  EXPECT_EQ(report.unread.size(), 2u);
  EXPECT_EQ(report.vms, 1);
  EXPECT_FALSE(world.TryRestart().has_value());
  EXPECT_EQ(lab.CodeOf("key-1", "web"), "ledger_behind");
  EXPECT_EQ(lab.Again("key-2", "fine").front(), fine);
  for (int sweep = 0; sweep < 4; ++sweep) {
    world.Reconcile("a");
    world.Reconcile("b");
    world.Advance(std::chrono::hours(48));
  }
  EXPECT_EQ(*here.Find(id), domain);
  EXPECT_EQ(*there.Find(id), domain);
  ASSERT_TRUE(there
                  .ChangeDomain(SimulatedCall::kUndefine, id,
                                [](std::optional<SimulatedDomain>& d) -> Status {
                                  d.reset();
                                  return {};
                                })
                  .has_value());
  EXPECT_TRUE(lab.Rebuild().IsWhole());
  lab.Serve();
  EXPECT_EQ(lab.Again("key-1", "web").front(), id);
}

// Its one machine is where somebody has brought it.
TEST(Rebuild, AMachineThatIsOnAnotherHostAloneIsKnownThere) {
  Lab lab({"a", "b"});
  World& world = lab.world;
  const VmId id = lab.Make("key-1", "web").front();
  world.RunUntilQuiet();
  ASSERT_EQ(world.VmRow(id).host, HostId{"a"});
  world.host("b").Plant(*world.host("a").Find(id));
  ASSERT_TRUE(world.host("a")
                  .ChangeDomain(SimulatedCall::kUndefine, id,
                                [](std::optional<SimulatedDomain>& d) -> Status {
                                  d.reset();
                                  return {};
                                })
                  .has_value());
  EXPECT_TRUE(world.Reconcile("b").is_alarmed);
  EXPECT_EQ(lab.Rebuild().told.size(), 1u);
  lab.Serve();
  EXPECT_EQ(world.VmRow(id).host, HostId{"b"});
  EXPECT_FALSE(world.Reconcile("b").is_alarmed);
  world.Reconcile("a");
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
}

// A sweep of the store would take files that nobody names, and with them what overlays stand on.
TEST(Rebuild, ImagesOfTheStoreThatMachinesStandOnAreRegisteredAgain) {
  Lab lab;
  World& world = lab.world;
  const VmId id = lab.Make("key-1", "web").front();
  world.RunUntilQuiet();
  SimulatedDomain domain = *world.host().Find(id);
  domain.label->origin->image_id = "01900000-0000-7000-8000-0000000000cc";
  domain.label->origin->image = "debian";
  domain.label->origin->disk_path = "/state/images/" + ToHex(Sha256("the disk"));
  domain.label->origin->disk_format = "qcow2";
  world.host().Plant(domain);
  world.LoseLedger();
  lab.Rebuild();
  const auto images = dynamic_cast<ports::ImageRegistry&>(world.ledger()).StoredImages();
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ(images->front().name, "debian");
  EXPECT_EQ(images->front().disk, Sha256("the disk"));
  EXPECT_EQ(world.VmRow(id).spec.image.id, ToString(images->front().id));
}

Fault Down() {
  Fault fault;
  fault.instead = Error{ErrorCode::kUnavailable, "no route"};
  return fault;
}

// Two hosts; the copy is older than a create on b.
struct TwoHosts : Lab {
  TwoHosts() : Lab({"a", "b"}) {
    EXPECT_TRUE(world.Declare("b", HostState::kDraining).has_value());
    on_a = Make("key-a", "on-a").front();
    world.RunUntilQuiet();
    world.KeepCopy();
    EXPECT_TRUE(world.Declare("a", HostState::kDraining).has_value());
    EXPECT_TRUE(world.Declare("b", HostState::kActive).has_value());
    on_b = Make("key-b", "on-b").front();
    world.RunUntilQuiet();
    EXPECT_EQ(world.VmRow(on_b).host, HostId{"b"});
    world.RestoreCopy();
    EXPECT_TRUE(world.TryRestart().has_value() || world.Age() == LedgerAge::kBehind);
    world.faults("b").Add(SimulatedCall::kConnect, Down(), 1'000);
  }
  workflows::RebuildOptions WithoutB() {
    workflows::RebuildOptions options;
    options.without = {HostId{"b"}};
    return options;
  }
  VmId on_a;
  VmId on_b;
};

TEST(Rebuild, AHostThatDoesNotAnswerIsNamedAndNothingIsWritten) {
  TwoHosts lab;
  const auto refused = lab.world.Rebuild();
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().detail.find("host b"), std::string::npos) << refused.error().detail;
  EXPECT_EQ(lab.world.ledger().Totals()->last_sequence, 1);
}

// What may be on the host that was left out stays blocked, all else is served.
TEST(Rebuild, WithoutAHostKnownKeysAreAnsweredAndNoCreateIsTakenUntilItIsRead) {
  TwoHosts lab;
  World& world = lab.world;
  const auto report = lab.Rebuild(lab.WithoutB());
  EXPECT_EQ(report.unread, std::set<HostId>{HostId{"b"}});
  EXPECT_FALSE(world.TryRestart().has_value());
  EXPECT_EQ(world.Age(), LedgerAge::kPartly);
  EXPECT_EQ(lab.CodeOf("key-b", "on-b"), "ledger_behind");
  EXPECT_EQ(lab.CodeOf("new", "new"), "ledger_behind");
  EXPECT_EQ(lab.Again("key-a", "on-a").front(), lab.on_a);
  ASSERT_TRUE(world.Change(Kind::kStop, lab.on_a).has_value());
  world.RunUntilQuiet();
  EXPECT_EQ(world.VmRow(lab.on_a).observed, Observed::kStopped);
  // It answers again, and is not touched before it was read.
  world.faults("b").Clear();
  const SimulatedDomain domain = *world.host("b").Find(lab.on_b);
  for (int sweep = 0; sweep < 4; ++sweep) {
    EXPECT_NE(world.Reconcile("b").problem, "");
    world.Advance(std::chrono::hours(48));
  }
  EXPECT_EQ(*world.host("b").Find(lab.on_b), domain);
  EXPECT_EQ(lab.Rebuild().vms, 1);
  lab.Serve();
  EXPECT_EQ(lab.Again("key-b", "on-b").front(), lab.on_b);
  EXPECT_EQ(world.host("b").Domains().size() + world.host("a").Domains().size(), 2u);
}

TEST(Rebuild, AHostThatWasLeftOutAndIsDeclaredDeadIsWaitedForNoMore) {
  TwoHosts lab;
  World& world = lab.world;
  lab.Rebuild(lab.WithoutB());
  EXPECT_FALSE(world.TryRestart().has_value());
  ASSERT_TRUE(world.Declare("b", HostState::kDead).has_value());
  EXPECT_EQ(world.Age(), LedgerAge::kCurrent);
  ASSERT_TRUE(world.Declare("a", HostState::kActive).has_value());
  EXPECT_EQ(lab.CodeOf("new", "new"), "taken");
  // Back from the dead it still was not read.
  world.faults("b").Clear();
  ASSERT_TRUE(world.Declare("b", HostState::kActive).has_value());
  EXPECT_NE(world.Reconcile("b").problem, "");
  EXPECT_EQ(lab.CodeOf("newer", "newer"), "ledger_behind");
}

// A create without a host in the copy may have been placed on the one that was left out.
TEST(Rebuild, WithoutAHostAnUnfinishedCreateWaits) {
  Lab lab({"a", "b"});
  World& world = lab.world;
  const VmId id = lab.Make("key-1", "web").front();
  world.KeepCopy();
  ASSERT_TRUE(world.Declare("a", HostState::kDraining).has_value());
  world.RunUntilQuiet();
  ASSERT_EQ(world.VmRow(id).host, HostId{"b"});
  world.RestoreCopy();
  world.faults("b").Add(SimulatedCall::kConnect, Down(), 1'000);
  workflows::RebuildOptions options;
  options.without = {HostId{"b"}};
  EXPECT_EQ(lab.Rebuild(options).given_up, 0);
  EXPECT_FALSE(world.TryRestart().has_value());
  world.RunUntilQuiet();
  EXPECT_TRUE(world.host("a").Domains().empty());
  EXPECT_FALSE(IsFinished(world.OperationRow(world.VmRow(id).operation).state));
  world.faults("b").Clear();
  EXPECT_EQ(lab.Rebuild().handed_back, 1);
  lab.Serve();
  EXPECT_EQ(world.VmRow(id).host, HostId{"b"});
  EXPECT_EQ(world.VmRow(id).state, VmState::kReady);
  EXPECT_TRUE(world.host("a").Domains().empty());
  EXPECT_EQ(world.Audit(), "");
}

// Protocol section 11: a host that did not answer at the start is compared before its first effect.
TEST(Rebuild, AHostThatAnswersLateShowsThatTheLedgerIsBehind) {
  TwoHosts lab;
  World& world = lab.world;
  EXPECT_FALSE(world.TryRestart().has_value());
  EXPECT_EQ(world.Age(), LedgerAge::kCurrent) << "nothing that was seen is ahead";
  world.faults("b").Clear();
  const SimulatedDomain domain = *world.host("b").Find(lab.on_b);
  EXPECT_NE(world.Reconcile("b").problem, "");
  EXPECT_EQ(world.Age(), LedgerAge::kBehind);
  EXPECT_EQ(lab.CodeOf("key-b", "on-b"), "ledger_behind");
  EXPECT_EQ(*world.host("b").Find(lab.on_b), domain);
}

// A rebuild dies at every call that writes: run again, it ends as if nothing had happened.
TEST(Rebuild, MayDieAnywhereAndIsRunAgain) {
  int crashes = 0;
  int shut = 0;
  for (const CrashPoint::When when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter}) {
    for (int call = 1;; ++call) {
      Lab lab;
      World& world = lab.world;
      const VmId unfinished = lab.Make("key-0", "unfinished").front();
      world.KeepCopy();
      world.RunUntilQuiet();
      lab.Delete(unfinished);
      const auto batch = lab.Make("key-1", "db", 2);
      const auto web = lab.Make("key-2", "web");
      world.RunUntilQuiet();
      const auto domains = world.host().Domains();
      world.RestoreCopy();
      world.crash().Arm(call, when);
      try {
        lab.Rebuild();
      } catch (const Crash&) {
        // Until it has come to its end, no create is taken.
        if (!world.TryRestart()) {
          EXPECT_EQ(lab.CodeOf("new", "new"), "ledger_behind") << "call " << call;
          ++shut;
        }
      }
      const bool has_fired = world.crash().has_fired();
      const auto report = lab.Rebuild();
      EXPECT_TRUE(report.IsWhole());
      lab.Serve();
      EXPECT_EQ(lab.Again("key-1", "db", 2), batch) << "call " << call;
      EXPECT_EQ(lab.Again("key-2", "web"), web) << "call " << call;
      EXPECT_EQ(lab.CodeOf("key-0", "unfinished"), "vm_missing") << "call " << call;
      ExpectSameMachines(world, domains);
      EXPECT_EQ(world.Audit(), "") << "call " << call;
      if (!has_fired) break;
      ++crashes;
    }
  }
  EXPECT_GE(crashes, 2 * 5);
  // All but the one after the last call.
  EXPECT_EQ(shut, crashes - 1);
}

}  // namespace
}  // namespace vmonce::node
