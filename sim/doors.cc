#include "sim/doors.h"

#include <fmt/format.h>

#include "model/label.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

template <typename Answer>
std::string_view OutcomeOf(const Answer& answer) {
  return answer ? "ok" : ToString(answer.error().code);
}
std::string_view OutcomeOf(const std::vector<ports::AcceptOutcome>& answers) {
  if (answers.empty()) return "ok";
  if (!answers.front()) return ToString(answers.front().error().code);
  static constexpr std::string_view kNames[] = {"accepted", "known", "tombstone", "joined",
                                                "declined"};
  return kNames[answers.front()->index()];
}
std::string_view OutcomeOf(const Result<ports::AdvanceOutcome>& answer) {
  if (!answer) return ToString(answer.error().code);
  static constexpr std::string_view kNames[] = {"recorded", "lost",    "marked",
                                                "held",     "no_room", "port_taken"};
  return kNames[static_cast<std::size_t>(*answer)];
}

class LedgerDoor final : public ports::Ledger {
 public:
  LedgerDoor(Stage& stage, std::string who) : stage_(stage), who_(std::move(who)) {}

  model::LedgerId Id() const override { return base().Id(); }
  Time Now() override { return base().Now(); }
  Status Ping() override {
    return Read("ping", [&] { return base().Ping(); });
  }
  std::vector<ports::AcceptOutcome> Accept(std::span<const ports::Submission> batch) override {
    const auto all = [&](const Error& error) {
      return std::vector<ports::AcceptOutcome>(batch.size(), std::unexpected(error));
    };
    return Through("accept", true, all, [&] {
      auto answers = base().Accept(batch);
      for (const ports::AcceptOutcome& answer : answers) {
        if (!answer) continue;
        const auto* accepted = std::get_if<ports::Accepted>(&*answer);
        if (accepted != nullptr) stage_.oracle.Accepted(accepted->operation);
      }
      return answers;
    });
  }
  ports::AcceptOutcome Revive(const model::OperationId& o, int attempt, const model::Resources& q,
                              const model::Resources& c) override {
    return Write("revive", [&] { return base().Revive(o, attempt, q, c); });
  }
  Result<std::vector<model::Operation>> TakeDue(const model::ReplicaId& owner, Milliseconds ttl,
                                                Milliseconds settle, int most) override {
    return Write("take_due", [&] {
      auto taken = base().TakeDue(owner, ttl, settle, most);
      if (taken) {
        for (const model::Operation& operation : *taken) stage_.oracle.Taken(operation);
      }
      return taken;
    });
  }
  Result<std::vector<model::OperationId>> Renew(std::span<const model::Lease> leases,
                                                Milliseconds ttl) override {
    return Write("renew", [&] {
      auto lost = base().Renew(leases, ttl);
      if (lost) stage_.oracle.Renewed(leases, *lost);
      return lost;
    });
  }
  Result<ports::AdvanceOutcome> Record(const ports::Advance& advance) override {
    return Write("record", [&] {
      const Result<ports::AdvanceOutcome> outcome = base().Record(advance);
      if (outcome) stage_.oracle.Recorded(advance, *outcome);
      return outcome;
    });
  }
  Result<std::optional<Time>> NextDue() override {
    return Read("next_due", [&] { return base().NextDue(); });
  }
  Status MakeDue(const model::OperationId& o) override {
    return Write("make_due", [&] { return base().MakeDue(o); });
  }
  Result<std::optional<std::variant<ports::Known, ports::KnownTombstone>>> FindByKey(
      const model::ProjectId& p, const Digest& k) override {
    return Read("find_by_key", [&] { return base().FindByKey(p, k); });
  }
  Result<std::optional<model::Operation>> GetOperation(const model::OperationId& id) override {
    return Read("get_operation", [&] { return base().GetOperation(id); });
  }
  Result<ports::PageOf<model::Operation>> ListOperations(const model::ProjectId& p,
                                                         const ports::OperationFilter& f,
                                                         const ports::Page& page) override {
    return Read("list_operations", [&] { return base().ListOperations(p, f, page); });
  }
  Result<std::optional<model::Vm>> GetVm(const model::VmId& id) override {
    return Read("get_vm", [&] { return base().GetVm(id); });
  }
  Result<std::vector<model::Vm>> VmsOf(const model::OperationId& o) override {
    return Read("vms_of", [&] { return base().VmsOf(o); });
  }
  Result<ports::PageOf<model::Vm>> ListVms(const model::ProjectId& p, const ports::VmFilter& f,
                                           const ports::Page& page) override {
    return Read("list_vms", [&] { return base().ListVms(p, f, page); });
  }
  Result<std::vector<model::TimelineEntry>> Timeline(const model::OperationId& id) override {
    return Read("timeline", [&] { return base().Timeline(id); });
  }
  Status AppendTimeline(std::span<const model::TimelineEntry> e) override {
    return Write("append_timeline", [&] { return base().AppendTimeline(e); });
  }
  Result<std::vector<model::Event>> Outbox(std::int64_t most) override {
    return Read("outbox", [&] { return base().Outbox(most); });
  }
  Result<ports::LedgerTotals> Totals() override {
    return Read("totals", [&] { return base().Totals(); });
  }
  Result<model::Resources> Usage(const model::ProjectId& p) override {
    return Read("usage", [&] { return base().Usage(p); });
  }
  Result<std::int64_t> LiveKeys(const model::ProjectId& p) override {
    return Read("live_keys", [&] { return base().LiveKeys(p); });
  }
  Status PutHost(const model::Host& host) override {
    return Write("put_host", [&] { return base().PutHost(host); });
  }
  Status MarkRegistered(const model::HostId& id) override {
    return Write("mark_registered", [&] { return base().MarkRegistered(id); });
  }
  Status SetHostState(const model::HostId& id, model::HostState state) override {
    return Write("set_host_state", [&] { return base().SetHostState(id, state); });
  }
  Status MarkReturned(const model::HostId& id) override {
    return Write("mark_returned", [&] { return base().MarkReturned(id); });
  }
  Result<std::vector<model::Host>> Hosts() override {
    return Read("hosts", [&] { return base().Hosts(); });
  }
  Result<std::vector<model::HostId>> HostsUsingPort(const model::HostPort& port) override {
    return Read("hosts_using_port", [&] { return base().HostsUsingPort(port); });
  }
  Result<std::vector<model::Vm>> VmsOnHost(const model::HostId& h,
                                           std::span<const model::VmId> also) override {
    return Read("vms_on_host", [&] { return base().VmsOnHost(h, also); });
  }
  Result<std::vector<model::VmId>> InTombstones(std::span<const model::VmId> vms) override {
    return Read("in_tombstones", [&] { return base().InTombstones(vms); });
  }
  Result<std::vector<model::VmId>> MovedAway(const model::HostId& h,
                                             std::span<const model::VmId> vms) override {
    return Read("moved_away", [&] { return base().MovedAway(h, vms); });
  }
  Result<int> Observe(std::span<const ports::Observation> o) override {
    return Write("observe", [&] {
      for (const ports::Observation& observation : o) stage_.oracle.Observed(observation);
      return base().Observe(o);
    });
  }
  Result<std::vector<ports::StraySighting>> NoteStrays(
      const model::HostId& h, std::span<const model::VmId> strays) override {
    return Write("note_strays", [&] { return base().NoteStrays(h, strays); });
  }
  Status MarkQuarantined(const model::HostId& h, const model::VmId& vm) override {
    return Write("mark_quarantined", [&] { return base().MarkQuarantined(h, vm); });
  }
  Result<ports::SweepCounts> Sweep(const model::RetentionPolicy& p, int most) override {
    return Write("sweep", [&] { return base().Sweep(p, most); });
  }

 private:
  ports::Ledger& base() const { return *stage_.store; }

  template <typename Call>
  auto Read(std::string_view name, Call call) -> decltype(call()) {
    return Through(name, false, [](const Error& error) { return std::unexpected(error); }, call);
  }
  template <typename Call>
  auto Write(std::string_view name, Call call) -> decltype(call()) {
    return Through(name, true, [](const Error& error) { return std::unexpected(error); }, call);
  }

  template <typename Fail, typename Call>
  auto Through(std::string_view name, bool writes, Fail fail, Call call) -> decltype(call()) {
    // Most transactions take no time that matters; some wait for a disk.
    const bool is_slow = stage_.work_chance.OneIn(8);
    stage_.Pass(name, Milliseconds(is_slow ? stage_.work_chance.Between(1, 20) : 0));
    if (stage_.Happens(FaultKind::kLedgerDown)) {
      stage_.ledger_down_until =
          stage_.scheduler.now() + Milliseconds(stage_.work_chance.Between(100, 20'000));
      stage_.Tell("the ledger", "does not answer for a while");
    }
    if (stage_.scheduler.now() < stage_.ledger_down_until) {
      return fail(Error{ErrorCode::kUnavailable, "the ledger does not answer (made up)"});
    }
    if (writes && stage_.Happens(FaultKind::kCommitUnknownUndone)) {
      stage_.Tell(who_, "ledger.{}: outcome unknown, and not done", name);
      return fail(Error{ErrorCode::kUnknown, "the commit's answer is lost (made up)"});
    }
    auto answer = call();
    stage_.story.Mix(OutcomeOf(answer));
    if (writes && stage_.story.IsTold()) {
      stage_.Tell(who_, "ledger.{} -> {}", name, OutcomeOf(answer));
    }
    if (writes && stage_.Happens(FaultKind::kCommitUnknown)) {
      stage_.Tell(who_, "ledger.{}: outcome unknown, and done", name);
      return fail(Error{ErrorCode::kUnknown, "the commit's answer is lost (made up)"});
    }
    stage_.Pass(name, Milliseconds(0));
    return answer;
  }

  Stage& stage_;
  const std::string who_;
};

// The caller's side of a host's door: calls pass it before and after, and a replica may die there.
class HostDoor final : public ports::Hypervisor {
 public:
  HostDoor(Stage& stage, std::string who, std::string host, std::unique_ptr<ports::Hypervisor> base)
      : stage_(stage), who_(std::move(who)), host_(std::move(host)), base_(std::move(base)) {}

  Result<ports::HostFacts> Connect(const model::HostMarker& m, ports::MarkerPolicy p) override {
    return Through("connect", nullptr, [&] { return base_->Connect(m, p); });
  }
  Result<std::optional<model::HostMarker>> ReadMarker() override {
    return Through("read_marker", nullptr, [&] { return base_->ReadMarker(); });
  }
  Milliseconds SettleTime() const override { return base_->SettleTime(); }
  int CallsOut(const model::VmId& vm) const override { return base_->CallsOut(vm); }
  Result<std::optional<ports::DomainSighting>> Look(const model::VmId& vm) override {
    return Through("look", &vm, [&] { return base_->Look(vm); });
  }
  Result<std::vector<ports::DomainSighting>> List() override {
    return Through("list", nullptr, [&] { return base_->List(); });
  }
  Result<std::vector<ports::VolumeSighting>> ListVolumes() override {
    return Through("list_volumes", nullptr, [&] { return base_->ListVolumes(); });
  }
  Result<std::vector<model::HostPort>> PortsInUse(
      const std::string& address, const std::vector<model::HostPort>& ports) override {
    return Through("ports_in_use", nullptr, [&] { return base_->PortsInUse(address, ports); });
  }
  Status CreateDisk(const ports::DiskOrder& o, const ports::EffectGuard& g) override {
    return Through("create_disk", &o.vm, [&] { return base_->CreateDisk(o, g); });
  }
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("delete_disk", &vm, [&] { return base_->DeleteDisk(vm, g); });
  }
  Status CreateSeed(const ports::SeedOrder& o, const ports::EffectGuard& g) override {
    stage_.oracle.SeedOrdered(o);
    return Through("create_seed", &o.vm, [&] { return base_->CreateSeed(o, g); });
  }
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("delete_seed", &vm, [&] { return base_->DeleteSeed(vm, g); });
  }
  Status Define(const ports::DomainOrder& o, const ports::EffectGuard& g) override {
    return Through("define", &o.vm, [&] { return base_->Define(o, g); });
  }
  Status StampFence(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("stamp_fence", &vm, [&] { return base_->StampFence(vm, g); });
  }
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("undefine", &vm, [&] { return base_->Undefine(vm, g); });
  }
  Status Start(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("start", &vm, [&] { return base_->Start(vm, g); });
  }
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("destroy", &vm, [&] { return base_->Destroy(vm, g); });
  }
  Status Shutdown(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("shutdown", &vm, [&] { return base_->Shutdown(vm, g); });
  }
  Status Reboot(const model::VmId& vm, const ports::EffectGuard& g) override {
    return Through("reboot", &vm, [&] { return base_->Reboot(vm, g); });
  }
  Result<ports::ConsoleChunk> ReadConsole(const model::VmId& vm, std::int64_t offset,
                                          std::size_t most) override {
    return Through("read_console", &vm, [&] { return base_->ReadConsole(vm, offset, most); });
  }

 private:
  template <typename Call>
  auto Through(std::string_view name, const model::VmId* vm, Call call) -> decltype(call()) {
    stage_.Pass(name, Milliseconds(stage_.work_chance.Between(0, 30)));
    auto answer = call();
    stage_.story.Mix(OutcomeOf(answer));
    if (stage_.story.IsTold()) {
      stage_.Tell(who_, "{}.{}{} -> {}", host_, name, vm ? " " + ToString(*vm).substr(24) : "",
                  OutcomeOf(answer));
    }
    stage_.Pass(name, Milliseconds(0));
    return answer;
  }

  Stage& stage_;
  const std::string who_;
  const std::string host_;
  const std::unique_ptr<ports::Hypervisor> base_;
};

class HostFaults final : public hypervisor::FaultPlan {
 public:
  HostFaults(Stage& stage, std::size_t machine) : stage_(stage), machine_(machine) {}

  hypervisor::Fault Next(hypervisor::SimulatedCall call,
                         const std::optional<model::VmId>& vm) override {
    using hypervisor::SimulatedCall;
    hypervisor::Fault fault;
    if (stage_.are_hosts_well) return fault;
    if (IsDown()) {
      fault.hang = Milliseconds(500);
      fault.instead = Error{ErrorCode::kUnavailable, "no connection to the host (made up)"};
      return fault;
    }
    if (stage_.Happens(FaultKind::kHostRefuses)) {
      fault.instead = Error{ErrorCode::kUnavailable, "busy (made up)"};
      return fault;
    }
    // Up to three times the deadline of a call.
    if (stage_.Happens(FaultKind::kHostHang)) {
      fault.hang = Milliseconds(stage_.work_chance.Between(1'000, 60'000));
    }
    switch (call) {
      case SimulatedCall::kLook: FaultOfLook(fault); break;
      case SimulatedCall::kList: FaultOfList(fault); break;
      case SimulatedCall::kConnect:
      case SimulatedCall::kListVolumes:
      case SimulatedCall::kPortsInUse:
      case SimulatedCall::kReadConsole: break;
      default: FaultOfEffect(call, fault); break;
    }
    (void)vm;
    stage_.settled_at =
        std::max(stage_.settled_at, stage_.scheduler.now() + fault.hang + fault.apply_after);
    return fault;
  }

 private:
  bool IsDown() {
    Machine& machine = stage_.machines[machine_];
    if (stage_.Happens(FaultKind::kHostDown)) {
      machine.down_until =
          stage_.scheduler.now() + Milliseconds(stage_.work_chance.Between(1'000, 90'000));
      stage_.Tell(machine.id.value, "does not answer for a while");
    }
    return stage_.scheduler.now() < machine.down_until;
  }
  void FaultOfLook(hypervisor::Fault& fault) {
    if (stage_.Happens(FaultKind::kNotFoundAsText)) {
      fault.instead = Error{ErrorCode::kUnavailable,
                            "Domain not found: no domain with matching uuid (made up)"};
    }
  }
  void FaultOfList(hypervisor::Fault& fault) {
    if (stage_.Happens(FaultKind::kListLag)) {
      fault.list_lag = Milliseconds(stage_.work_chance.Between(1'000, 60'000));
    }
    if (!stage_.faults.Has(FaultKind::kListOmits)) return;
    for (const auto& domain : stage_.machines[machine_].host->Domains()) {
      if (stage_.Happens(FaultKind::kListOmits)) fault.omit.push_back(domain.id);
    }
  }
  void FaultOfEffect(hypervisor::SimulatedCall call, hypervisor::Fault& fault) {
    if (stage_.Happens(FaultKind::kReplyLost)) fault.lose_reply = true;
    // What an embedded hypervisor does ends with the process, and late effects are the world's.
    const Milliseconds settle =
        stage_.faults.Has(FaultKind::kStandby) ? stage_.shape.settle / 2 : stage_.shape.settle;
    if (settle.count() > 0 && stage_.Happens(FaultKind::kAppliedLate)) {
      // Never quite as long: beyond the settle time nothing is promised (protocol section 2).
      fault.outlives_undefine = call == hypervisor::SimulatedCall::kStart &&
                                stage_.Happens(FaultKind::kStartOutlivesUndefine);
      fault.apply_after = Milliseconds(stage_.work_chance.Between(1, settle.count() - 1'000));
      stage_.Tell(stage_.machines[machine_].id.value, "{} will take effect {} ms late",
                  ToString(call), fault.apply_after.count());
    }
  }

  Stage& stage_;
  const std::size_t machine_;
};

}  // namespace

std::unique_ptr<ports::Ledger> NewLedgerDoor(Stage& stage, std::string who) {
  return std::make_unique<LedgerDoor>(stage, std::move(who));
}

std::unique_ptr<ports::Hypervisor> NewHostDoor(Stage& stage, std::string who, std::string host,
                                               std::unique_ptr<ports::Hypervisor> base) {
  return std::make_unique<HostDoor>(stage, std::move(who), std::move(host), std::move(base));
}

std::shared_ptr<hypervisor::FaultPlan> NewHostFaults(Stage& stage, std::size_t machine) {
  return std::make_shared<HostFaults>(stage, machine);
}

}  // namespace vmonce::sim
