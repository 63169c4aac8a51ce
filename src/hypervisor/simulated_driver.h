// A hypervisor over a SimulatedHost, for tests, benchmarks, simulated worlds and for trying the
// service without QEMU. It holds the whole contract of ports/hypervisor.h, except where its
// FaultPlan says otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/threads.h"
#include "hypervisor/fault_plan.h"
#include "hypervisor/simulated_host.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

struct SimulatedDriverOptions {
  Milliseconds latency{0};  // Of every call.
  Milliseconds settle_time{0};
};

// Thread-safe, and never gives a call up by itself: that is HostThreads'. Clock and Threads outlive
// it and every effect that a fault applies late.
class SimulatedDriver final : public ports::Hypervisor {
 public:
  // The host is shared with other drivers and with effects that are still to be applied; the plan
  // with whoever steers it.
  SimulatedDriver(std::shared_ptr<SimulatedHost> host, std::shared_ptr<FaultPlan> plan,
                  SimulatedDriverOptions options, Clock& clock, Threads& threads);

  Result<ports::HostFacts> Connect(const model::HostMarker& marker,
                                   ports::MarkerPolicy policy) override;
  Result<std::optional<model::HostMarker>> ReadMarker() override;
  Milliseconds SettleTime() const override { return options_.settle_time; }
  int CallsOut(const model::VmId&) const override { return 0; }
  Result<std::optional<ports::DomainSighting>> Look(const model::VmId& vm) override;
  Result<std::vector<ports::DomainSighting>> List() override;
  Result<std::vector<ports::VolumeSighting>> ListVolumes() override;
  Result<std::vector<model::HostPort>> PortsInUse(
      const std::string& address, const std::vector<model::HostPort>& ports) override;
  Status CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) override;
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) override;
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) override;
  Status StampFence(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Start(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Shutdown(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Reboot(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Result<ports::ConsoleChunk> ReadConsole(const model::VmId& vm, std::int64_t offset,
                                          std::size_t most) override;

 private:
  struct Target {
    SimulatedCall call;
    model::VmId vm;
  };
  // What an effect does to the host; it checks `guard` while everything stands still.
  using Apply = std::function<Status(SimulatedHost& host, const model::LedgerId& ledger,
                                     const ports::EffectGuard& guard)>;

  Result<model::LedgerId> Ledger() const;
  // The fault of a look that goes on, or the error that it answers.
  Result<Fault> BeginLook(SimulatedCall call, const std::optional<model::VmId>& vm);
  Status Effect(const Target& target, const ports::EffectGuard& guard, Apply apply);
  Status AddVolume(const Target& target, const std::string& name, const ports::EffectGuard& guard);
  Status RemoveVolume(const Target& target, std::string name, const ports::EffectGuard& guard);
  void Pause(Milliseconds duration);

  const std::shared_ptr<SimulatedHost> host_;
  const std::shared_ptr<FaultPlan> plan_;
  const SimulatedDriverOptions options_;
  Clock& clock_;
  Threads& threads_;
  const std::unique_ptr<Monitor> monitor_;
  std::optional<model::HostMarker> marker_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::hypervisor
