#include "hypervisor/simulated_host.h"

#include <fmt/format.h>

#include "base/check.h"
#include "hypervisor/marker.h"
#include "hypervisor/simulated_store.h"
#include "model/limits.h"

namespace vmonce::hypervisor {

std::string_view ToString(SimulatedCall call) {
  switch (call) {
    case SimulatedCall::kConnect: return "connect";
    case SimulatedCall::kLook: return "look";
    case SimulatedCall::kList: return "list";
    case SimulatedCall::kListVolumes: return "list_volumes";
    case SimulatedCall::kPortsInUse: return "ports_in_use";
    case SimulatedCall::kCreateDisk: return "create_disk";
    case SimulatedCall::kDeleteDisk: return "delete_disk";
    case SimulatedCall::kCreateSeed: return "create_seed";
    case SimulatedCall::kDeleteSeed: return "delete_seed";
    case SimulatedCall::kDefine: return "define";
    case SimulatedCall::kStampFence: return "stamp_fence";
    case SimulatedCall::kUndefine: return "undefine";
    case SimulatedCall::kStart: return "start";
    case SimulatedCall::kDestroy: return "destroy";
    case SimulatedCall::kShutdown: return "shutdown";
    case SimulatedCall::kReboot: return "reboot";
    case SimulatedCall::kReadConsole: return "read_console";
  }
  return "unknown";
}

Result<std::shared_ptr<SimulatedHost>> SimulatedHost::Open(SimulatedOptions options, Clock& clock,
                                                           Threads& threads) {
  auto host = std::make_shared<SimulatedHost>(std::move(options), clock, threads);
  if (auto loaded = host->Load(); !loaded) return std::unexpected(loaded.error());
  return host;
}

SimulatedHost::SimulatedHost(SimulatedOptions options, Clock& clock, Threads& threads)
    : options_(std::move(options)), clock_(clock), monitor_(threads.NewMonitor()) {}

Status SimulatedHost::Load() {
  if (options_.directory.empty()) return {};
  auto state = LoadSimulatedState(options_.directory);
  if (!state) return std::unexpected(state.error());
  MonitorLock lock(*monitor_);
  marker_ = state->marker;
  volumes_ = std::move(state->volumes);
  for (SimulatedDomain& domain : state->domains) {
    names_[domain.name] = domain.id;
    domains_[domain.id] = std::move(domain);
  }
  return {};
}

Result<bool> SimulatedHost::CheckMarker(const model::HostMarker& marker,
                                        ports::MarkerPolicy policy) {
  MonitorLock lock(*monitor_);
  std::vector<model::HostMarker> found;
  if (marker_) found.push_back(*marker_);
  auto write = JudgeMarkers(found, marker, policy == ports::MarkerPolicy::kWriteIfNone);
  if (!write || !*write) return write;
  if (!options_.directory.empty()) {
    if (auto stored = StoreMarker(options_.directory, marker); !stored) {
      return std::unexpected(stored.error());
    }
  }
  marker_ = marker;
  return true;
}

std::optional<model::HostMarker> SimulatedHost::Marker() const {
  MonitorLock lock(*monitor_);
  return marker_;
}

std::optional<SimulatedDomain> SimulatedHost::FindLocked(const model::VmId& id) const {
  const auto found = domains_.find(id);
  if (found == domains_.end()) return std::nullopt;
  return found->second;
}

std::optional<SimulatedDomain> SimulatedHost::Find(const model::VmId& id) const {
  MonitorLock lock(*monitor_);
  return FindLocked(id);
}

std::vector<SimulatedDomain> SimulatedHost::Domains() const {
  return DomainsBefore(Milliseconds(0));
}

std::vector<SimulatedDomain> SimulatedHost::DomainsBefore(Milliseconds ago) const {
  MonitorLock lock(*monitor_);
  std::map<model::VmId, std::optional<SimulatedDomain>> changed;
  const Instant then = clock_.Monotonic() - ago;
  // Newest first: the oldest state that ended after `then` is what stood at `then`.
  if (ago.count() > 0) {
    for (auto past = history_.rbegin(); past != history_.rend() && past->at > then; ++past) {
      changed[past->id] = past->domain;
    }
  }
  std::vector<SimulatedDomain> result;
  for (const auto& [id, domain] : domains_) {
    if (!changed.contains(id)) result.push_back(domain);
  }
  for (auto& [id, domain] : changed) {
    if (domain) result.push_back(std::move(*domain));
  }
  return result;
}

std::vector<std::string> SimulatedHost::Volumes() const {
  MonitorLock lock(*monitor_);
  return {volumes_.begin(), volumes_.end()};
}

bool SimulatedHost::HasVolume(const std::string& name) const {
  MonitorLock lock(*monitor_);
  return volumes_.contains(name);
}

std::vector<model::HostPort> SimulatedHost::PortsInUse(const std::vector<model::HostPort>& ports,
                                                       const model::VmId& but_for) const {
  MonitorLock lock(*monitor_);
  std::set<model::HostPort> taken = taken_ports_;
  for (const auto& [id, domain] : domains_) {
    if (id == but_for || domain.power == model::Observed::kStopped) continue;
    for (const model::Forward& forward : domain.forwards) {
      taken.insert({forward.protocol, forward.host_port});
    }
  }
  std::vector<model::HostPort> in_use;
  for (const model::HostPort& port : ports) {
    if (taken.contains(port)) in_use.push_back(port);
  }
  return in_use;
}

void SimulatedHost::TakePort(const model::HostPort& port) {
  MonitorLock lock(*monitor_);
  taken_ports_.insert(port);
}

void SimulatedHost::FreePort(const model::HostPort& port) {
  MonitorLock lock(*monitor_);
  taken_ports_.erase(port);
}

Status SimulatedHost::Put(const model::VmId& id, std::optional<SimulatedDomain> domain) {
  if (!options_.directory.empty()) {
    if (auto stored = StoreDomain(options_.directory, id, domain); !stored) {
      return Fail(ErrorCode::kInternal, stored.error().detail);
    }
  }
  auto before = FindLocked(id);
  if (before) names_.erase(before->name);
  history_.push_back({clock_.Monotonic(), id, std::move(before)});
  if (history_.size() > model::limits::kSimulatedHistory) history_.pop_front();
  if (domain) {
    names_[domain->name] = id;
    domains_[id] = *std::move(domain);
  } else {
    domains_.erase(id);
  }
  return {};
}

Status SimulatedHost::ChangeDomain(SimulatedCall call, const model::VmId& id,
                                   const Change& change) {
  MonitorLock lock(*monitor_);
  const auto before = FindLocked(id);
  auto after = before;
  if (auto changed = change(after); !changed) return changed;
  if (after == before) return {};
  if (after) {
    const auto taken = names_.find(after->name);
    if (taken != names_.end() && taken->second != id) {
      return Fail(ErrorCode::kConflict,
                  fmt::format("the name {} belongs to domain {}; nothing was touched", after->name,
                              ToString(taken->second)));
    }
  }
  if (auto put = Put(id, std::move(after)); !put) return put;
  ++effects_[call];
  return {};
}

Status SimulatedHost::AddVolume(SimulatedCall call, const model::VmId& id, const std::string& name,
                                const Permit& permit) {
  MonitorLock lock(*monitor_);
  if (auto permitted = permit(FindLocked(id)); !permitted) return permitted;
  if (volumes_.contains(name)) return {};
  if (!options_.directory.empty()) {
    if (auto stored = StoreVolume(options_.directory, name, true); !stored) return stored;
  }
  volumes_.insert(name);
  ++effects_[call];
  return {};
}

Status SimulatedHost::RemoveVolume(SimulatedCall call, const model::VmId& id,
                                   const std::string& name, const Permit& permit) {
  MonitorLock lock(*monitor_);
  if (auto permitted = permit(FindLocked(id)); !permitted) return permitted;
  if (!volumes_.contains(name)) return {};
  if (!options_.directory.empty()) {
    if (auto stored = StoreVolume(options_.directory, name, false); !stored) return stored;
  }
  volumes_.erase(name);
  ++effects_[call];
  return {};
}

void SimulatedHost::Plant(const SimulatedDomain& domain) {
  MonitorLock lock(*monitor_);
  CHECK(Put(domain.id, domain).has_value());
}

void SimulatedHost::PowerOffAll() {
  MonitorLock lock(*monitor_);
  const auto domains = domains_;
  for (const auto& [id, domain] : domains) {
    if (domain.power == model::Observed::kStopped) continue;
    auto off = domain;
    off.power = model::Observed::kStopped;
    off.stopped_by = model::StopCause::kHost;
    CHECK(Put(id, std::move(off)).has_value());
  }
}

std::int64_t SimulatedHost::Effects(SimulatedCall call) const {
  MonitorLock lock(*monitor_);
  const auto found = effects_.find(call);
  return found == effects_.end() ? 0 : found->second;
}

}  // namespace vmonce::hypervisor
