#include "sim/guard_watch.h"

#include "sim/forwarding.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

class GuardWatch final : public ForwardingHypervisor {
 public:
  GuardWatch(Stage& stage, std::size_t machine, std::shared_ptr<hypervisor::SimulatedHost> reached,
             Clock& clock, std::unique_ptr<ports::Hypervisor> base)
      : ForwardingHypervisor(std::move(base)),
        stage_(stage),
        machine_(machine),
        reached_(std::move(reached)),
        clock_(clock) {}

  Status CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) override {
    return Seen(order.vm, guard, base_->CreateDisk(order, guard));
  }
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->DeleteDisk(vm, guard));
  }
  Status CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) override {
    return Seen(order.vm, guard, base_->CreateSeed(order, guard));
  }
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->DeleteSeed(vm, guard));
  }
  Status Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) override {
    return Seen(order.vm, guard, base_->Define(order, guard));
  }
  Status StampFence(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->StampFence(vm, guard));
  }
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->Undefine(vm, guard));
  }
  Status Start(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->Start(vm, guard));
  }
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->Destroy(vm, guard));
  }
  Status Shutdown(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->Shutdown(vm, guard));
  }
  Status Reboot(const model::VmId& vm, const ports::EffectGuard& guard) override {
    return Seen(vm, guard, base_->Reboot(vm, guard));
  }

 private:
  // Nothing else has run since it took place.
  Status Seen(const model::VmId& vm, const ports::EffectGuard& guard, Status done) {
    if (done) {
      stage_.oracle.EffectTookPlace(
          {stage_.machines[machine_], *reached_, vm, guard, clock_.Monotonic()});
    }
    return done;
  }

  Stage& stage_;
  const std::size_t machine_;
  const std::shared_ptr<hypervisor::SimulatedHost> reached_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<ports::Hypervisor> Watched(Stage& stage, std::size_t machine,
                                           std::shared_ptr<hypervisor::SimulatedHost> reached,
                                           Clock& clock, std::unique_ptr<ports::Hypervisor> base) {
  return std::make_unique<GuardWatch>(stage, machine, std::move(reached), clock, std::move(base));
}

}  // namespace vmonce::sim
