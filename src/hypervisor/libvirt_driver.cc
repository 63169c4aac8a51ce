#include "hypervisor/libvirt_driver.h"

#include <fmt/format.h>

#include "base/port_probe.h"
#include "hypervisor/guard_check.h"
#include "model/limits.h"

namespace vmonce::hypervisor {

LibvirtDriver::LibvirtDriver(LibvirtOptions options, Clock& clock, Threads& threads, Logger& logger)
    : options_(std::move(options)),
      clock_(clock),
      threads_(threads),
      logger_(logger),
      monitor_(threads.NewMonitor()) {}

LibvirtDriver::~LibvirtDriver() {
  MonitorLock lock(*monitor_);
  session_.reset();  // Before the event loop, which closing may need.
}

Result<ports::HostFacts> LibvirtDriver::Connect(const model::HostMarker& marker,
                                                ports::MarkerPolicy policy) {
  MonitorLock lock(*monitor_);
  auto facts = ConnectLocked(marker, policy);
  if (facts) return facts;
  retry_at_ = clock_.Monotonic() + model::limits::kReconnectEvery;
  last_error_ = facts.error();
  return facts;
}

Result<ports::HostFacts> LibvirtDriver::ConnectLocked(const model::HostMarker& marker,
                                                      ports::MarkerPolicy policy) {
  is_proven_ = false;
  if (auto opened = OpenIfNeeded(); !opened) return std::unexpected(opened.error());
  // The marker is read even on a live connection: the disk beneath it may be another one now.
  auto wrote = session_->CheckMarker(marker, policy);
  if (!wrote) return std::unexpected(wrote.error());
  if (!type_) {
    auto type = session_->ChooseType(options_.accelerator, logger_);
    if (!type) return std::unexpected(type.error());
    type_ = *type;
  }
  auto facts = session_->Facts(*type_);
  if (!facts) return facts;
  facts->wrote_marker = *wrote;
  is_proven_ = true;
  marker_ = marker;
  return facts;
}

Result<std::optional<model::HostMarker>> LibvirtDriver::ReadMarker() {
  MonitorLock lock(*monitor_);
  if (auto opened = OpenIfNeeded(); !opened) return std::unexpected(opened.error());
  auto markers = session_->ReadMarkers();
  if (!markers) return std::unexpected(markers.error());
  if (markers->size() > 1) return Fail(ErrorCode::kConflict, "the host carries several markers");
  if (markers->empty()) return std::nullopt;
  return std::move(markers->front());
}

Status LibvirtDriver::OpenIfNeeded() {
  if (session_ != nullptr && session_->IsAlive()) return {};
  return Reopen();
}

Status LibvirtDriver::Reopen() {
  session_.reset();
  if (events_ == nullptr) {
    events_ = options_.events ? options_.events : std::make_shared<EventLoop>(threads_);
    events_->Start();
  }
  if (options_.uri.kind == HostKind::kEmbedded && root_ == nullptr) {
    auto root = EmbeddedRoot::Open(options_.uri.directory);
    if (!root) return std::unexpected(root.error());
    root_ = *std::move(root);
    trimmer_ = std::make_unique<ConsoleTrimmer>(
        ConsoleTrimmerOptions{root_->ConsolesPath(), options_.console_bytes}, threads_, logger_);
  }
  auto session = LibvirtSession::Open(options_, root_, logger_);
  if (!session) return std::unexpected(session.error());
  session_ = *std::move(session);
  return {};
}

Result<LibvirtDriver::Session> LibvirtDriver::Ready() {
  MonitorLock lock(*monitor_);
  if (!marker_) return Fail(ErrorCode::kUnavailable, "the host was never connected to");
  if (is_proven_ && session_->IsAlive()) return session_;
  if (clock_.Monotonic() < retry_at_) {
    return Fail(ErrorCode::kUnavailable, "not reconnected yet: " + last_error_.detail);
  }
  if (auto facts = ConnectLocked(*marker_, ports::MarkerPolicy::kRequire); !facts) {
    retry_at_ = clock_.Monotonic() + model::limits::kReconnectEvery;
    last_error_ = facts.error();
    // Whatever it is, nothing of the call that asked has happened.
    return Fail(ErrorCode::kUnavailable, last_error_.detail);
  }
  return session_;
}

Result<std::optional<ports::DomainSighting>> LibvirtDriver::Look(const model::VmId& vm) {
  auto session = Ready();
  if (!session) return std::unexpected(session.error());
  auto seen = (*session)->Find(vm);
  if (!seen) return std::unexpected(seen.error());
  if (!*seen) return std::nullopt;
  return (*seen)->sighting;
}

Result<std::vector<ports::DomainSighting>> LibvirtDriver::List() {
  auto session = Ready();
  if (!session) return std::unexpected(session.error());
  auto seen = (*session)->List();
  if (!seen) return std::unexpected(seen.error());
  std::vector<ports::DomainSighting> sightings;
  for (SeenDomain& domain : *seen) sightings.push_back(std::move(domain.sighting));
  return sightings;
}

Result<std::vector<ports::VolumeSighting>> LibvirtDriver::ListVolumes() {
  auto session = Ready();
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
  auto session = Ready();
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
  auto session = Ready();
  if (!session) return std::unexpected(session.error());
  auto seen = (*session)->Find(vm);
  if (!seen) return std::unexpected(seen.error());
  if (*seen) {
    if (auto owned = CheckOwned((*seen)->sighting.label, guard); !owned) {
      return std::unexpected(owned.error());
    }
  }
  MonitorLock lock(*monitor_);
  return Owned{.session = *session, .domain = *std::move(seen), .type = *type_};
}

std::function<Status()> LibvirtDriver::PermitOf(const ports::EffectGuard& guard) {
  return [this, guard] { return CheckDeadline(guard, clock_); };
}

}  // namespace vmonce::hypervisor
