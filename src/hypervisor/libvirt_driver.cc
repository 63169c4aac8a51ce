#include "hypervisor/libvirt_driver.h"

#include <fmt/format.h>

#include "base/port_probe.h"
#include "hypervisor/guard_check.h"

namespace vmonce::hypervisor {

LibvirtDriver::LibvirtDriver(LibvirtOptions options, Clock& clock, Threads& threads, Logger& logger)
    : options_(std::move(options)),
      clock_(clock),
      sessions_(options_, clock, threads, logger),
      uploads_(threads) {}

LibvirtDriver::~LibvirtDriver() = default;

Result<ports::HostFacts> LibvirtDriver::Connect(const model::HostMarker& marker,
                                                ports::MarkerPolicy policy) {
  return sessions_.Connect(marker, policy);
}

Result<std::optional<model::HostMarker>> LibvirtDriver::ReadMarker() {
  return sessions_.ReadMarker();
}

Result<std::optional<ports::DomainSighting>> LibvirtDriver::Look(const model::VmId& vm) {
  auto session = sessions_.Take();
  if (!session) return std::unexpected(session.error());
  auto seen = (*session)->Find(vm);
  if (!seen) return std::unexpected(seen.error());
  if (!*seen) return std::nullopt;
  return (*seen)->sighting;
}

Result<std::vector<ports::DomainSighting>> LibvirtDriver::List() {
  auto session = sessions_.Take();
  if (!session) return std::unexpected(session.error());
  auto seen = (*session)->List();
  if (!seen) return std::unexpected(seen.error());
  std::vector<ports::DomainSighting> sightings;
  for (SeenDomain& domain : *seen) sightings.push_back(std::move(domain.sighting));
  return sightings;
}

Result<std::vector<ports::VolumeSighting>> LibvirtDriver::ListVolumes() {
  auto session = sessions_.Take();
  if (!session) return std::unexpected(session.error());
  auto names = (*session)->disks().Names();
  if (!names) return std::unexpected(names.error());
  std::vector<ports::VolumeSighting> sightings;
  for (std::string& name : *names) {
    if (const auto vm = model::VmOfVolume((*session)->marker().ledger, name)) {
      sightings.push_back({.name = std::move(name), .vm = *vm});
    }
  }
  return sightings;
}

Result<std::vector<model::HostPort>> LibvirtDriver::PortsInUse(
    const std::string& address, const std::vector<model::HostPort>& ports) {
  const HostKind kind = options_.uri.kind;
  if (kind != HostKind::kEmbedded && kind != HostKind::kLocalDaemon) {
    return Fail(ErrorCode::kRefused, "which ports are in use there cannot be seen from here");
  }
  std::vector<model::HostPort> in_use;
  for (const model::HostPort& port : ports) {
    const auto number = static_cast<std::uint16_t>(port.port);
    const bool is_tcp = port.protocol == model::Protocol::kTcp;
    const bool is_in_use =
        is_tcp ? IsTcpPortInUse(address, number) : IsUdpPortInUse(address, number);
    if (is_in_use) in_use.push_back(port);
  }
  return in_use;
}

Result<ports::ConsoleChunk> LibvirtDriver::ReadConsole(const model::VmId& vm, std::int64_t offset,
                                                       std::size_t most) {
  auto session = sessions_.Take();
  if (!session) return std::unexpected(session.error());
  return (*session)->disks().ReadConsole(model::DomainName((*session)->marker().ledger, vm), offset,
                                         most);
}

Result<LibvirtDriver::Owned> LibvirtDriver::FindOwned(const model::VmId& vm,
                                                      const ports::EffectGuard& guard) {
  // Looked at early, so that a stale call does no work, and again right before the effect.
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) {
    return std::unexpected(in_time.error());
  }
  auto session = sessions_.Take();
  if (!session) return std::unexpected(session.error());
  auto seen = (*session)->Find(vm);
  if (!seen) return std::unexpected(seen.error());
  if (*seen) {
    if (auto owned = CheckOwned((*seen)->sighting.label, guard); !owned) {
      return std::unexpected(owned.error());
    }
  }
  return Owned{
      .session = *std::move(session), .domain = *std::move(seen), .type = sessions_.Type()};
}

std::function<Status()> LibvirtDriver::PermitOf(const ports::EffectGuard& guard) {
  return [this, guard] { return CheckDeadline(guard, clock_); };
}

}  // namespace vmonce::hypervisor
