// The two doors with a crash point in every call that changes something or precedes one.
#pragma once

#include "ports/ledger_rebuild.h"
#include "sim/forwarding.h"
#include "tests/node/world.h"

namespace vmonce::node {

class CrashingHypervisor final : public sim::ForwardingHypervisor {
 public:
  CrashingHypervisor(std::unique_ptr<ports::Hypervisor> base, CrashPoint& crash)
      : ForwardingHypervisor(std::move(base)), crash_(crash) {}

  Result<std::optional<ports::DomainSighting>> Look(const model::VmId& vm) override {
    return crash_.Through([&] { return base_->Look(vm); });
  }
  Result<std::vector<model::HostPort>> PortsInUse(
      const std::string& address, const std::vector<model::HostPort>& ports) override {
    return crash_.Through([&] { return base_->PortsInUse(address, ports); });
  }
  Status CreateDisk(const ports::DiskOrder& o, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->CreateDisk(o, g); });
  }
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->DeleteDisk(vm, g); });
  }
  Status CreateSeed(const ports::SeedOrder& o, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->CreateSeed(o, g); });
  }
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->DeleteSeed(vm, g); });
  }
  Status Define(const ports::DomainOrder& o, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->Define(o, g); });
  }
  Status StampFence(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->StampFence(vm, g); });
  }
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->Undefine(vm, g); });
  }
  Status Start(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->Start(vm, g); });
  }
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->Destroy(vm, g); });
  }
  Status Shutdown(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->Shutdown(vm, g); });
  }
  Status Reboot(const model::VmId& vm, const ports::EffectGuard& g) override {
    return crash_.Through([&] { return base_->Reboot(vm, g); });
  }

 private:
  CrashPoint& crash_;
};

// Records, takings and acceptances pass the crash point.
class CrashingLedger final : public sim::ForwardingLedger {
 public:
  CrashingLedger(ports::Ledger& base, CrashPoint& crash) : ForwardingLedger(base), crash_(crash) {}

  std::vector<ports::AcceptOutcome> Accept(std::span<const ports::Submission> batch) override {
    return crash_.Through([&] { return base_.Accept(batch); });
  }
  ports::AcceptOutcome Revive(const model::OperationId& o, int attempt, const model::Resources& q,
                              const model::Resources& c) override {
    return crash_.Through([&] { return base_.Revive(o, attempt, q, c); });
  }
  Result<std::vector<model::Operation>> TakeDue(const model::ReplicaId& owner, Milliseconds ttl,
                                                Milliseconds settle, int most) override {
    return crash_.Through([&] { return base_.TakeDue(owner, ttl, settle, most); });
  }
  Result<ports::AdvanceOutcome> Record(const ports::Advance& advance) override {
    return crash_.Through([&] { return base_.Record(advance); });
  }
  Status SetHostState(const model::HostId& id, model::HostState state) override {
    return crash_.Through([&] { return base_.SetHostState(id, state); });
  }
  Status MarkReturned(const model::HostId& id) override {
    return crash_.Through([&] { return base_.MarkReturned(id); });
  }
  Result<int> Observe(std::span<const ports::Observation> o) override {
    return crash_.Through([&] { return base_.Observe(o); });
  }

 private:
  CrashPoint& crash_;
};

// A rebuild's own door, likewise.
class CrashingRows final : public ports::LedgerRebuild {
 public:
  CrashingRows(ports::LedgerRebuild& base, CrashPoint& crash) : base_(base), crash_(crash) {}

  Result<std::vector<model::Operation>> Unfinished() override { return base_.Unfinished(); }
  Result<std::vector<std::string>> Rewrite(const ports::RebuiltOperation& rebuilt) override {
    return crash_.Through([&] { return base_.Rewrite(rebuilt); });
  }
  Status RaiseSequence(std::int64_t newest) override {
    return crash_.Through([&] { return base_.RaiseSequence(newest); });
  }
  Status SetUnread(const model::HostId& host, bool is_unread) override {
    return crash_.Through([&] { return base_.SetUnread(host, is_unread); });
  }

 private:
  ports::LedgerRebuild& base_;
  CrashPoint& crash_;
};

}  // namespace vmonce::node
