// Doors that hand every call on: a decorator says only what it does otherwise.
#pragma once

#include "ports/hypervisor.h"
#include "ports/ledger.h"

namespace vmonce::sim {

class ForwardingHypervisor : public ports::Hypervisor {
 public:
  explicit ForwardingHypervisor(std::unique_ptr<ports::Hypervisor> base) : base_(std::move(base)) {}

  Result<ports::HostFacts> Connect(const model::HostMarker& m, ports::MarkerPolicy p) override {
    return base_->Connect(m, p);
  }
  Result<std::optional<model::HostMarker>> ReadMarker() override { return base_->ReadMarker(); }
  Milliseconds SettleTime() const override { return base_->SettleTime(); }
  int CallsOut(const model::VmId& vm) const override { return base_->CallsOut(vm); }
  Result<std::optional<ports::DomainSighting>> Look(const model::VmId& vm) override {
    return base_->Look(vm);
  }
  Result<std::vector<ports::DomainSighting>> List() override { return base_->List(); }
  Result<std::vector<ports::VolumeSighting>> ListVolumes() override { return base_->ListVolumes(); }
  Result<std::vector<model::HostPort>> PortsInUse(
      const std::string& address, const std::vector<model::HostPort>& ports) override {
    return base_->PortsInUse(address, ports);
  }
  Status CreateDisk(const ports::DiskOrder& o, const ports::EffectGuard& g) override {
    return base_->CreateDisk(o, g);
  }
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->DeleteDisk(vm, g);
  }
  Status CreateSeed(const ports::SeedOrder& o, const ports::EffectGuard& g) override {
    return base_->CreateSeed(o, g);
  }
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->DeleteSeed(vm, g);
  }
  Status Define(const ports::DomainOrder& o, const ports::EffectGuard& g) override {
    return base_->Define(o, g);
  }
  Status StampFence(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->StampFence(vm, g);
  }
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->Undefine(vm, g);
  }
  Status Start(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->Start(vm, g);
  }
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->Destroy(vm, g);
  }
  Status Shutdown(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->Shutdown(vm, g);
  }
  Status Reboot(const model::VmId& vm, const ports::EffectGuard& g) override {
    return base_->Reboot(vm, g);
  }
  Result<ports::ConsoleChunk> ReadConsole(const model::VmId& vm, std::int64_t offset,
                                          std::size_t most) override {
    return base_->ReadConsole(vm, offset, most);
  }

 protected:
  const std::unique_ptr<ports::Hypervisor> base_;
};

class ForwardingLedger : public ports::Ledger {
 public:
  explicit ForwardingLedger(std::unique_ptr<ports::Ledger> base)
      : owned_(std::move(base)), base_(*owned_) {}
  explicit ForwardingLedger(ports::Ledger& base) : base_(base) {}

  model::LedgerId Id() const override { return base_.Id(); }
  Time Now() override { return base_.Now(); }
  Status Ping() override { return base_.Ping(); }
  std::vector<ports::AcceptOutcome> Accept(std::span<const ports::Submission> batch) override {
    return base_.Accept(batch);
  }
  ports::AcceptOutcome Revive(const model::OperationId& o, int attempt, const model::Resources& q,
                              const model::Resources& c) override {
    return base_.Revive(o, attempt, q, c);
  }
  Result<std::vector<model::Operation>> TakeDue(const model::ReplicaId& owner, Milliseconds ttl,
                                                Milliseconds settle, int most) override {
    return base_.TakeDue(owner, ttl, settle, most);
  }
  Result<std::vector<model::OperationId>> Renew(std::span<const model::Lease> leases,
                                                Milliseconds ttl) override {
    return base_.Renew(leases, ttl);
  }
  Result<ports::AdvanceOutcome> Record(const ports::Advance& advance) override {
    return base_.Record(advance);
  }
  Result<std::optional<Time>> NextDue() override { return base_.NextDue(); }
  Status MakeDue(const model::OperationId& o) override { return base_.MakeDue(o); }
  Result<std::optional<std::variant<ports::Known, ports::KnownTombstone>>> FindByKey(
      const model::ProjectId& p, const Digest& k) override {
    return base_.FindByKey(p, k);
  }
  Result<std::optional<model::Operation>> GetOperation(const model::OperationId& id) override {
    return base_.GetOperation(id);
  }
  Result<ports::PageOf<model::Operation>> ListOperations(const model::ProjectId& p,
                                                         const ports::OperationFilter& f,
                                                         const ports::Page& page) override {
    return base_.ListOperations(p, f, page);
  }
  Result<std::optional<model::Vm>> GetVm(const model::VmId& id) override { return base_.GetVm(id); }
  Result<std::vector<model::Vm>> VmsOf(const model::OperationId& o) override {
    return base_.VmsOf(o);
  }
  Result<ports::PageOf<model::Vm>> ListVms(const model::ProjectId& p, const ports::VmFilter& f,
                                           const ports::Page& page) override {
    return base_.ListVms(p, f, page);
  }
  Result<std::vector<model::TimelineEntry>> Timeline(const model::OperationId& id) override {
    return base_.Timeline(id);
  }
  Status AppendTimeline(std::span<const model::TimelineEntry> e) override {
    return base_.AppendTimeline(e);
  }
  Result<std::vector<model::Event>> Outbox(std::int64_t most) override {
    return base_.Outbox(most);
  }
  Result<ports::LedgerTotals> Totals() override { return base_.Totals(); }
  Result<model::Resources> Usage(const model::ProjectId& p) override { return base_.Usage(p); }
  Result<std::int64_t> LiveKeys(const model::ProjectId& p) override { return base_.LiveKeys(p); }
  Status PutHost(const model::Host& host) override { return base_.PutHost(host); }
  Status MarkRegistered(const model::HostId& id) override { return base_.MarkRegistered(id); }
  Status SetHostState(const model::HostId& id, model::HostState state) override {
    return base_.SetHostState(id, state);
  }
  Status MarkReturned(const model::HostId& id) override { return base_.MarkReturned(id); }
  Result<std::vector<model::Host>> Hosts() override { return base_.Hosts(); }
  Result<std::vector<model::HostId>> HostsUsingPort(const model::HostPort& port) override {
    return base_.HostsUsingPort(port);
  }
  Result<std::vector<model::Vm>> VmsOnHost(const model::HostId& h,
                                           std::span<const model::VmId> also) override {
    return base_.VmsOnHost(h, also);
  }
  Result<std::vector<model::VmId>> InTombstones(std::span<const model::VmId> vms) override {
    return base_.InTombstones(vms);
  }
  Result<std::vector<model::VmId>> MovedAway(const model::HostId& h,
                                             std::span<const model::VmId> vms) override {
    return base_.MovedAway(h, vms);
  }
  Result<int> Observe(std::span<const ports::Observation> o) override { return base_.Observe(o); }
  Result<std::vector<ports::StraySighting>> NoteStrays(
      const model::HostId& h, std::span<const model::VmId> strays) override {
    return base_.NoteStrays(h, strays);
  }
  Status MarkQuarantined(const model::HostId& h, const model::VmId& vm) override {
    return base_.MarkQuarantined(h, vm);
  }
  Result<ports::SweepCounts> Sweep(const model::RetentionPolicy& p, int most) override {
    return base_.Sweep(p, most);
  }

 protected:
  const std::unique_ptr<ports::Ledger> owned_;
  ports::Ledger& base_;
};

}  // namespace vmonce::sim
