#include "hypervisor/simulated_driver.h"

#include <fmt/format.h>

#include <limits>

#include "hypervisor/guard_check.h"

namespace vmonce::hypervisor {
namespace {

using model::Observed;
using model::StopCause;

// A label of another ledger is a stranger's.
std::optional<model::Label> OursOnly(const std::optional<model::Label>& label,
                                     const model::LedgerId& ledger) {
  return label && label->ledger == ledger ? label : std::nullopt;
}

ports::DomainSighting Sighting(const SimulatedDomain& domain, const model::LedgerId& ledger) {
  const bool is_unknown =
      domain.power == Observed::kStopped && domain.stopped_by == StopCause::kNone;
  return {.id = domain.id,
          .name = domain.name,
          .power = domain.power,
          .label = OursOnly(domain.label, ledger),
          .stopped_by = is_unknown ? StopCause::kHost : domain.stopped_by,
          .addresses =
              domain.power == Observed::kStopped ? std::vector<std::string>() : domain.addresses,
          .facts = {.cpus = domain.cpus,
                    .memory_mib = domain.memory_mib,
                    .mac = domain.mac,
                    .network = domain.network,
                    .forwards = domain.forwards,
                    .kernel_path = domain.kernel_path,
                    .initrd_path = {},
                    .cmdline = {}}};
}

// For a domain that need not exist.
Status CheckIfThere(const std::optional<SimulatedDomain>& domain, const model::LedgerId& ledger,
                    const ports::EffectGuard& guard) {
  return domain ? CheckOwned(OursOnly(domain->label, ledger), guard) : Status();
}

// For a domain that must exist.
Status CheckThere(const std::optional<SimulatedDomain>& domain, const model::LedgerId& ledger,
                  const ports::EffectGuard& guard) {
  if (!domain) return Fail(ErrorCode::kNotFound, "no such domain");
  return CheckIfThere(domain, ledger, guard);
}

void PowerOff(SimulatedDomain& domain, StopCause by) {
  domain.power = Observed::kStopped;
  domain.stopped_by = by;
}

// QEMU ends at its start when it cannot listen.
Status CheckPorts(const SimulatedHost& host, const std::optional<SimulatedDomain>& domain) {
  if (!domain || domain->power == Observed::kRunning) return {};
  std::vector<model::HostPort> ports;
  for (const model::Forward& forward : domain->forwards) {
    ports.push_back({forward.protocol, forward.host_port});
  }
  if (host.PortsInUse(ports, domain->id).empty()) return {};
  return Fail(ErrorCode::kUnavailable, "a port is in use (simulated)");
}

bool Runs(const SimulatedDomain& domain) { return domain.power != Observed::kStopped; }

}  // namespace

SimulatedDriver::SimulatedDriver(std::shared_ptr<SimulatedHost> host,
                                 std::shared_ptr<FaultPlan> plan, SimulatedDriverOptions options,
                                 Clock& clock, Threads& threads)
    : host_(std::move(host)),
      plan_(std::move(plan)),
      options_(options),
      clock_(clock),
      threads_(threads),
      monitor_(threads.NewMonitor()) {}

Result<ports::HostFacts> SimulatedDriver::Connect(const model::HostMarker& marker,
                                                  ports::MarkerPolicy policy) {
  const Fault fault = plan_->Next(SimulatedCall::kConnect, std::nullopt);
  Pause(options_.latency + fault.hang);
  if (fault.instead) return std::unexpected(*fault.instead);
  auto wrote = host_->CheckMarker(marker, policy);
  if (!wrote) return std::unexpected(wrote.error());
  MonitorLock lock(*monitor_);
  marker_ = marker;
  return ports::HostFacts{.hypervisor = "simulated",
                          .accelerator = "simulated",
                          .capacity = host_->Options().capacity,
                          .wrote_marker = *wrote};
}

Result<std::optional<model::HostMarker>> SimulatedDriver::ReadMarker() {
  const Fault fault = plan_->Next(SimulatedCall::kConnect, std::nullopt);
  Pause(options_.latency + fault.hang);
  if (fault.instead) return std::unexpected(*fault.instead);
  return host_->Marker();
}

Result<std::optional<ports::DomainSighting>> SimulatedDriver::Look(const model::VmId& vm) {
  auto ledger = Ledger();
  if (!ledger) return std::unexpected(ledger.error());
  if (auto fault = BeginLook(SimulatedCall::kLook, vm); !fault) {
    return std::unexpected(fault.error());
  }
  const auto domain = host_->Find(vm);
  if (!domain) return std::nullopt;
  return Sighting(*domain, *ledger);
}

Result<std::vector<ports::DomainSighting>> SimulatedDriver::List() {
  auto ledger = Ledger();
  if (!ledger) return std::unexpected(ledger.error());
  auto fault = BeginLook(SimulatedCall::kList, std::nullopt);
  if (!fault) return std::unexpected(fault.error());
  std::vector<ports::DomainSighting> sightings;
  for (const SimulatedDomain& domain : host_->DomainsBefore(fault->list_lag)) {
    if (std::ranges::find(fault->omit, domain.id) != fault->omit.end()) continue;
    sightings.push_back(Sighting(domain, *ledger));
  }
  return sightings;
}

Result<std::vector<ports::VolumeSighting>> SimulatedDriver::ListVolumes() {
  auto ledger = Ledger();
  if (!ledger) return std::unexpected(ledger.error());
  auto fault = BeginLook(SimulatedCall::kListVolumes, std::nullopt);
  if (!fault) return std::unexpected(fault.error());
  std::vector<ports::VolumeSighting> sightings;
  for (const std::string& name : host_->Volumes()) {
    const auto vm = model::VmOfVolume(*ledger, name);
    if (!vm || std::ranges::find(fault->omit, *vm) != fault->omit.end()) continue;
    sightings.push_back({.name = name, .vm = *vm});
  }
  return sightings;
}

Result<std::vector<model::HostPort>> SimulatedDriver::PortsInUse(
    const std::string&, const std::vector<model::HostPort>& ports) {
  if (auto fault = BeginLook(SimulatedCall::kPortsInUse, std::nullopt); !fault) {
    return std::unexpected(fault.error());
  }
  return host_->PortsInUse(ports, {});
}

Status SimulatedDriver::CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) {
  return AddVolume({SimulatedCall::kCreateDisk, order.vm}, order.name, guard);
}

Status SimulatedDriver::CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) {
  return AddVolume({SimulatedCall::kCreateSeed, order.vm}, order.name, guard);
}

Status SimulatedDriver::DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto ledger = Ledger();
  if (!ledger) return std::unexpected(ledger.error());
  return RemoveVolume({SimulatedCall::kDeleteDisk, vm}, model::DiskName(*ledger, vm), guard);
}

Status SimulatedDriver::DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto ledger = Ledger();
  if (!ledger) return std::unexpected(ledger.error());
  return RemoveVolume({SimulatedCall::kDeleteSeed, vm}, model::SeedName(*ledger, vm), guard);
}

Status SimulatedDriver::Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) {
  model::Label label = order.label;
  label.fence = guard.fence;
  return Effect({SimulatedCall::kDefine, order.vm}, guard,
                [order, label](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.ChangeDomain(
                      SimulatedCall::kDefine, order.vm,
                      [&](std::optional<SimulatedDomain>& domain) {
                        if (auto check = CheckIfThere(domain, ledger, g); !check) return check;
                        if (!domain) domain = SimulatedDomain{.id = order.vm};
                        domain->name = order.name;
                        domain->label = label;
                        domain->mac = order.mac;
                        domain->cpus = order.spec.cpus;
                        domain->memory_mib = order.spec.memory_mib;
                        domain->network = order.spec.network;
                        domain->kernel_path = order.spec.image.kernel_path;
                        domain->forwards = order.forwards;
                        domain->volumes.clear();
                        for (const auto& name : {order.disk_name, order.seed_name}) {
                          if (!name.empty()) domain->volumes.push_back(name);
                        }
                        return Status();
                      });
                });
}

Status SimulatedDriver::StampFence(const model::VmId& vm, const ports::EffectGuard& guard) {
  const model::Fence fence = guard.fence;
  return Effect({SimulatedCall::kStampFence, vm}, guard,
                [vm, fence](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.ChangeDomain(SimulatedCall::kStampFence, vm,
                                           [&](std::optional<SimulatedDomain>& domain) {
                                             if (auto check = CheckThere(domain, ledger, g); !check)
                                               return check;
                                             domain->label->fence = fence;
                                             return Status();
                                           });
                });
}

Status SimulatedDriver::Undefine(const model::VmId& vm, const ports::EffectGuard& guard) {
  return Effect({SimulatedCall::kUndefine, vm}, guard,
                [vm](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.ChangeDomain(SimulatedCall::kUndefine, vm,
                                           [&](std::optional<SimulatedDomain>& domain) -> Status {
                                             if (auto check = CheckIfThere(domain, ledger, g);
                                                 !check)
                                               return check;
                                             if (domain && Runs(*domain)) {
                                               return Fail(ErrorCode::kConflict, "the domain runs");
                                             }
                                             domain.reset();
                                             return {};
                                           });
                });
}

Status SimulatedDriver::Start(const model::VmId& vm, const ports::EffectGuard& guard) {
  return Effect({SimulatedCall::kStart, vm}, guard,
                [vm](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) -> Status {
                  const auto seen = host.Find(vm);
                  for (const auto& volume : seen ? seen->volumes : std::vector<std::string>()) {
                    if (host.HasVolume(volume)) continue;
                    // What QEMU says of a missing disk is an error that a later start may not meet.
                    return Fail(ErrorCode::kUnavailable, "there is no volume " + volume);
                  }
                  if (auto ports = CheckPorts(host, seen); !ports) return ports;
                  return host.ChangeDomain(
                      SimulatedCall::kStart, vm, [&](std::optional<SimulatedDomain>& domain) {
                        if (auto check = CheckThere(domain, ledger, g); !check) return check;
                        if (domain->power == Observed::kRunning) return Status();
                        domain->power = Observed::kRunning;
                        domain->stopped_by = StopCause::kNone;
                        ++domain->starts;
                        domain->console += fmt::format("simulated: {} started\n", domain->name);
                        return Status();
                      });
                });
}

Status SimulatedDriver::Destroy(const model::VmId& vm, const ports::EffectGuard& guard) {
  return Effect({SimulatedCall::kDestroy, vm}, guard,
                [vm](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.ChangeDomain(
                      SimulatedCall::kDestroy, vm, [&](std::optional<SimulatedDomain>& domain) {
                        if (auto check = CheckIfThere(domain, ledger, g); !check) return check;
                        if (domain && Runs(*domain)) PowerOff(*domain, StopCause::kPerson);
                        return Status();
                      });
                });
}

Status SimulatedDriver::Shutdown(const model::VmId& vm, const ports::EffectGuard& guard) {
  return Effect({SimulatedCall::kShutdown, vm}, guard,
                [vm](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.ChangeDomain(SimulatedCall::kShutdown, vm,
                                           [&](std::optional<SimulatedDomain>& domain) -> Status {
                                             if (auto check = CheckThere(domain, ledger, g); !check)
                                               return check;
                                             if (!Runs(*domain))
                                               return Fail(ErrorCode::kConflict, "it does not run");
                                             PowerOff(*domain, StopCause::kGuest);
                                             return {};
                                           });
                });
}

Status SimulatedDriver::Reboot(const model::VmId& vm, const ports::EffectGuard& guard) {
  return Effect({SimulatedCall::kReboot, vm}, guard,
                [vm](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.ChangeDomain(SimulatedCall::kReboot, vm,
                                           [&](std::optional<SimulatedDomain>& domain) -> Status {
                                             if (auto check = CheckThere(domain, ledger, g); !check)
                                               return check;
                                             if (!Runs(*domain))
                                               return Fail(ErrorCode::kConflict, "it does not run");
                                             domain->console += fmt::format(
                                                 "simulated: {} rebooted\n", domain->name);
                                             return {};
                                           });
                });
}

Result<ports::ConsoleChunk> SimulatedDriver::ReadConsole(const model::VmId& vm, std::int64_t offset,
                                                         std::size_t most) {
  auto ledger = Ledger();
  if (!ledger) return std::unexpected(ledger.error());
  if (auto fault = BeginLook(SimulatedCall::kReadConsole, vm); !fault) {
    return std::unexpected(fault.error());
  }
  const auto domain = host_->Find(vm);
  if (!domain || domain->starts == 0 || !OursOnly(domain->label, *ledger)) {
    return Fail(ErrorCode::kNotFound, "the VM has no console yet");
  }
  const auto size = static_cast<std::int64_t>(domain->console.size());
  const std::int64_t from = std::clamp<std::int64_t>(offset < 0 ? size + offset : offset, 0, size);
  ports::ConsoleChunk chunk{.data = domain->console.substr(static_cast<std::size_t>(from), most)};
  chunk.next_offset = from + static_cast<std::int64_t>(chunk.data.size());
  return chunk;
}

Result<model::LedgerId> SimulatedDriver::Ledger() const {
  MonitorLock lock(*monitor_);
  if (!marker_) return Fail(ErrorCode::kUnavailable, "the host was never connected to");
  return marker_->ledger;
}

Result<Fault> SimulatedDriver::BeginLook(SimulatedCall call, const std::optional<model::VmId>& vm) {
  Fault fault = plan_->Next(call, vm);
  Pause(options_.latency + fault.hang);
  if (fault.instead) return std::unexpected(*fault.instead);
  if (fault.lose_reply) return Fail(ErrorCode::kUnavailable, "the reply was lost (simulated)");
  return fault;
}

Status SimulatedDriver::Effect(const Target& target, const ports::EffectGuard& guard, Apply apply) {
  auto ledger = Ledger();
  if (!ledger) return std::unexpected(ledger.error());
  const Fault fault = plan_->Next(target.call, target.vm);
  Pause(options_.latency + fault.hang);
  if (fault.instead) return std::unexpected(*fault.instead);
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;

  if (fault.apply_after.count() > 0) {
    // As a real host does: the fence is looked at now, and the order, once sent, is carried out
    // whatever happens meanwhile.
    if (auto check = CheckIfThere(host_->Find(target.vm), *ledger, guard); !check) return check;
    const ports::EffectGuard any{.fence = {std::numeric_limits<std::int64_t>::max()}};
    threads_.SpawnDetached("late-effect",
                           [host = host_, ledger = *ledger, any, after = fault.apply_after,
                            apply = std::move(apply), &threads = threads_] {
                             threads.SleepFor(after, {});
                             (void)apply(*host, ledger, any);
                           });
    return Fail(ErrorCode::kUnknown, "no reply in time (simulated)");
  }

  Status done = apply(*host_, *ledger, guard);
  if (fault.lose_reply) return Fail(ErrorCode::kUnknown, "the reply was lost (simulated)");
  return done;
}

Status SimulatedDriver::AddVolume(const Target& target, const std::string& name,
                                  const ports::EffectGuard& guard) {
  return Effect(target, guard,
                [target, name](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.AddVolume(target.call, target.vm, name, [&](const auto& domain) {
                    return CheckIfThere(domain, ledger, g);
                  });
                });
}

Status SimulatedDriver::RemoveVolume(const Target& target, std::string name,
                                     const ports::EffectGuard& guard) {
  return Effect(target, guard,
                [target, name](SimulatedHost& host, const model::LedgerId& ledger, const auto& g) {
                  return host.RemoveVolume(
                      target.call, target.vm, name, [&](const auto& domain) -> Status {
                        if (auto check = CheckIfThere(domain, ledger, g); !check) return check;
                        if (domain && Runs(*domain))
                          return Fail(ErrorCode::kConflict, "the domain runs");
                        return {};
                      });
                });
}

void SimulatedDriver::Pause(Milliseconds duration) {
  if (duration.count() > 0) threads_.SleepFor(duration, {});
}

}  // namespace vmonce::hypervisor
