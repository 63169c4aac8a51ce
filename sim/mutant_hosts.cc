#include "sim/forwarding.h"
#include "sim/mutants.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

// A replica's door to a host, believing or ordering what it must not.
class BrokenHost final : public ForwardingHypervisor {
 public:
  BrokenHost(Stage& stage, Mutant mutant, std::size_t machine,
             std::unique_ptr<ports::Hypervisor> base)
      : ForwardingHypervisor(std::move(base)), stage_(stage), mutant_(mutant), machine_(machine) {}

  Milliseconds SettleTime() const override { return MutatedSettle(stage_, base_->SettleTime()); }

  Result<std::optional<ports::DomainSighting>> Look(const model::VmId& vm) override {
    if (mutant_ == Mutant::kLookBlind) return std::nullopt;
    if (mutant_ == Mutant::kListBelieved) return LookInList(vm);
    auto seen = base_->Look(IdOf(vm));
    if (!seen && mutant_ == Mutant::kTextBelieved && seen.error().detail.contains("not found")) {
      return std::nullopt;
    }
    return seen;
  }
  Result<std::vector<ports::DomainSighting>> List() override {
    auto seen = base_->List();
    if (!seen || mutant_ != Mutant::kStrangersStopped) return seen;
    for (ports::DomainSighting& domain : *seen) {
      if (domain.label) continue;
      domain.label = model::Label{};
      domain.label->ledger = stage_.ledger->Id();
    }
    return seen;
  }
  Status CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) override {
    return Told(base_->CreateDisk(order, guard));
  }
  Status CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) override {
    return Told(base_->CreateSeed(order, guard));
  }
  Status Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) override {
    if (mutant_ == Mutant::kIdentityNotFixed) {
      ++attempts_;
      ports::DomainOrder anew = order;
      anew.vm = IdOf(order.vm);
      anew.name += std::to_string(attempts_);
      return base_->Define(anew, guard);
    }
    return Told(base_->Define(order, guard));
  }
  Status Start(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Told(base_->Start(IdOf(vm), guard));
  }
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& guard) override {
    if (mutant_ == Mutant::kStrangersStopped) PowerOff(vm);
    return Told(base_->Destroy(vm, guard));
  }
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Told(base_->Undefine(vm, guard));
  }
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Told(base_->DeleteDisk(vm, guard));
  }
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Told(base_->DeleteSeed(vm, guard));
  }

 private:
  model::VmId IdOf(model::VmId vm) const {
    if (mutant_ == Mutant::kIdentityNotFixed) {
      vm.value.bytes[15] ^= static_cast<std::uint8_t>(attempts_);
    }
    return vm;
  }
  Status Told(Status done) const {
    const bool is_unknown = !done && done.error().code == ErrorCode::kUnknown;
    if (is_unknown && mutant_ == Mutant::kUnknownTakenForDone) return {};
    return done;
  }
  Result<std::optional<ports::DomainSighting>> LookInList(const model::VmId& vm) {
    const auto all = base_->List();
    if (!all) return std::unexpected(all.error());
    const auto found = std::ranges::find(*all, vm, &ports::DomainSighting::id);
    if (found == all->end()) return std::nullopt;
    return *found;
  }
  void PowerOff(const model::VmId& vm) {
    // A refusal is no matter here.
    (void)stage_.machines[machine_].host->ChangeDomain(
        hypervisor::SimulatedCall::kDestroy, vm,
        [](std::optional<hypervisor::SimulatedDomain>& domain) {
          if (domain) domain->power = model::Observed::kStopped;
          return Status();
        });
  }

  Stage& stage_;
  const Mutant mutant_;
  const std::size_t machine_;
  int attempts_ = 0;
};

// A host that does not look at all of the guard.
class UnguardedHost final : public ForwardingHypervisor {
 public:
  UnguardedHost(Mutant mutant, std::shared_ptr<hypervisor::SimulatedHost> reached,
                std::unique_ptr<ports::Hypervisor> base)
      : ForwardingHypervisor(std::move(base)), mutant_(mutant), reached_(std::move(reached)) {}

  Result<ports::HostFacts> Connect(const model::HostMarker& marker,
                                   ports::MarkerPolicy policy) override {
    const bool is_any = mutant_ == Mutant::kMarkerNotRequired;
    return base_->Connect(marker, is_any ? ports::MarkerPolicy::kWriteIfNone : policy);
  }
  Status CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) override {
    return base_->CreateDisk(order, Guard(order.vm, guard));
  }
  Status CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) override {
    return base_->CreateSeed(order, Guard(order.vm, guard));
  }
  Status Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) override {
    return base_->Define(order, Guard(order.vm, guard));
  }
  Status Start(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return base_->Start(vm, Guard(vm, guard));
  }
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return base_->Destroy(vm, UndoGuard(vm, guard));
  }
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return base_->Undefine(vm, UndoGuard(vm, guard));
  }
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return base_->DeleteDisk(vm, UndoGuard(vm, guard));
  }
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return base_->DeleteSeed(vm, UndoGuard(vm, guard));
  }

 private:
  static ports::EffectGuard AnyFence(ports::EffectGuard guard,
                                     const std::optional<hypervisor::SimulatedDomain>& domain) {
    if (domain && domain->label) guard.fence = std::max(guard.fence, domain->label->fence);
    return guard;
  }
  static ports::EffectGuard AnyTime(ports::EffectGuard guard) {
    guard.deadline = kNever;
    guard.renewed = nullptr;
    return guard;
  }
  ports::EffectGuard Guard(const model::VmId& vm, const ports::EffectGuard& guard) const {
    if (mutant_ == Mutant::kFenceIgnoredBesideEffect) return AnyFence(guard, reached_->Find(vm));
    return mutant_ == Mutant::kDeadlineIgnored ? AnyTime(guard) : guard;
  }
  ports::EffectGuard UndoGuard(const model::VmId& vm, const ports::EffectGuard& guard) const {
    if (mutant_ != Mutant::kUndoNotFenced) return Guard(vm, guard);
    return AnyTime(AnyFence(guard, reached_->Find(vm)));
  }

  const Mutant mutant_;
  const std::shared_ptr<hypervisor::SimulatedHost> reached_;
};

}  // namespace

std::unique_ptr<ports::Hypervisor> Mutated(Stage& stage, std::size_t machine,
                                           std::unique_ptr<ports::Hypervisor> host) {
  if (!stage.mutant) return host;
  return std::make_unique<BrokenHost>(stage, *stage.mutant, machine, std::move(host));
}

std::unique_ptr<ports::Hypervisor> MutatedGuards(Stage& stage,
                                                 std::shared_ptr<hypervisor::SimulatedHost> reached,
                                                 std::unique_ptr<ports::Hypervisor> host) {
  if (!stage.mutant) return host;
  return std::make_unique<UnguardedHost>(*stage.mutant, std::move(reached), std::move(host));
}

}  // namespace vmonce::sim
