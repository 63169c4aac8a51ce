#include "hypervisor/libvirt_session.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "hypervisor/file_disks.h"
#include "model/forward_limits.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

// A peer that is gone is noticed after 5 s × 3; only connections over a network have keepalives.
constexpr int kKeepAliveSeconds = 5;
constexpr unsigned kKeepAliveCount = 3;

model::Observed PowerOf(int state) {
  switch (state) {
    case VIR_DOMAIN_RUNNING:
    case VIR_DOMAIN_BLOCKED:
    case VIR_DOMAIN_SHUTDOWN: return model::Observed::kRunning;
    case VIR_DOMAIN_PAUSED:
    case VIR_DOMAIN_PMSUSPENDED: return model::Observed::kPaused;
    case VIR_DOMAIN_SHUTOFF:
    case VIR_DOMAIN_CRASHED: return model::Observed::kStopped;
    default: return model::Observed::kUnknown;
  }
}

// Why a domain is off, by libvirt's reason (virDomainShutoffReason). One that libvirt does not know
// any more (it was started since) went down with its host, as did one whose QEMU it found dead.
model::StopCause StopCauseOf(int state, int reason) {
  if (state == VIR_DOMAIN_CRASHED) return model::StopCause::kHost;
  if (state != VIR_DOMAIN_SHUTOFF) return model::StopCause::kNone;
  switch (reason) {
    case VIR_DOMAIN_SHUTOFF_SHUTDOWN: return model::StopCause::kGuest;
    case VIR_DOMAIN_SHUTOFF_DESTROYED:
    case VIR_DOMAIN_SHUTOFF_MIGRATED:
    case VIR_DOMAIN_SHUTOFF_SAVED:
    case VIR_DOMAIN_SHUTOFF_FROM_SNAPSHOT: return model::StopCause::kPerson;
    default: return model::StopCause::kHost;  // Unknown, crashed, failed, daemon.
  }
}

std::string VersionText(virConnectPtr connection) {
  const char* type = virConnectGetType(connection);
  unsigned long version = 0;
  if (type == nullptr || virConnectGetVersion(connection, &version) != 0) return "unknown";
  return fmt::format("{} {}.{}.{}", type, version / 1'000'000, version / 1'000 % 1'000,
                     version % 1'000);
}

bool Offers(virConnectPtr connection, const char* type) {
  const LibvirtText capabilities(
      virConnectGetDomainCapabilities(connection, nullptr, "x86_64", "pc", type, 0));
  return capabilities != nullptr;
}

void FreeInterfaces(virDomainInterfacePtr* interfaces, int count) {
  for (int i = 0; i < count; ++i) virDomainInterfaceFree(interfaces[i]);
  std::free(interfaces);
}

// An answer that fails tells of no address, and of nothing else.
std::vector<std::string> AddressesFrom(virDomainPtr domain, unsigned source) {
  std::vector<std::string> addresses;
  virDomainInterfacePtr* interfaces = nullptr;
  const int count = virDomainInterfaceAddresses(domain, &interfaces, source, 0);
  for (int i = 0; i < count; ++i) {
    for (unsigned j = 0; j < interfaces[i]->naddrs; ++j) {
      const char* const address = interfaces[i]->addrs[j].addr;
      if (address != nullptr) addresses.emplace_back(address);
    }
  }
  if (count >= 0) FreeInterfaces(interfaces, count);
  // In one order, so that the same addresses are no change.
  std::ranges::sort(addresses);
  const auto twice = std::ranges::unique(addresses);
  addresses.erase(twice.begin(), twice.end());
  if (addresses.size() > model::limits::kVmAddresses) {
    addresses.resize(model::limits::kVmAddresses);
  }
  return addresses;
}

// Leases are libvirt's own; on a bridge, only who has spoken to the host is known.
std::vector<std::string> AddressesOf(virDomainPtr domain) {
  auto addresses = AddressesFrom(domain, VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE);
  if (addresses.empty()) {
    addresses = AddressesFrom(domain, VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_ARP);
  }
  return addresses;
}

// Why an embedded host does not open, where its text alone does not help.
std::string Hint(HostKind kind) {
  if (kind != HostKind::kEmbedded) return "";
  if (geteuid() == 0 && getpwnam("libvirt-qemu") == nullptr) {
    return " (as root, Debian's libvirt needs the user libvirt-qemu, even where it is not used: "
           "useradd --system --no-create-home --shell /usr/sbin/nologin libvirt-qemu)";
  }
  return " (libvirt-daemon-driver-qemu must be installed, and a process has one root at most)";
}

}  // namespace

Result<std::shared_ptr<LibvirtSession>> LibvirtSession::Open(const LibvirtOptions& options,
                                                             std::shared_ptr<EmbeddedRoot> root) {
  const virConnectPtr connection = virConnectOpen(options.uri.uri.c_str());
  if (connection == nullptr) {
    const LibvirtFault fault = LastFault();
    return Fail(ErrorCode::kUnavailable, fmt::format("libvirt {}: {}{}", options.uri.uri,
                                                     fault.message, Hint(options.uri.kind)));
  }
  auto session = std::make_shared<LibvirtSession>(options.uri.kind, connection, std::move(root));
  virConnectSetKeepAlive(connection, kKeepAliveSeconds, kKeepAliveCount);
  if (options.uri.kind == HostKind::kEmbedded) {
    CHECK(session->root_ != nullptr);
    session->disks_ = std::make_unique<FileDisks>(session->root_);
  } else {
    auto disks = PoolDisks::Open(connection, {.kind = options.uri.kind,
                                              .name = options.pool,
                                              .path = options.pool_path,
                                              .scratch = options.scratch});
    if (!disks) return std::unexpected(disks.error());
    session->pool_disks_ = disks->get();
    session->disks_ = *std::move(disks);
  }
  return session;
}

LibvirtSession::LibvirtSession(HostKind kind, virConnectPtr connection,
                               std::shared_ptr<EmbeddedRoot> root)
    : kind_(kind), connection_(connection), root_(std::move(root)) {}

LibvirtSession::~LibvirtSession() = default;

Result<std::vector<model::HostMarker>> LibvirtSession::ReadMarkers() {
  return kind_ == HostKind::kEmbedded ? root_->ReadMarkers() : pool_disks_->ReadMarkers();
}

Result<bool> LibvirtSession::CheckMarker(const model::HostMarker& marker,
                                         ports::MarkerPolicy policy) {
  auto wrote = kind_ == HostKind::kEmbedded ? root_->CheckMarker(marker, policy)
                                            : pool_disks_->CheckMarker(marker, policy);
  if (wrote && marker_ != marker) marker_ = marker;
  return wrote;
}

Result<DomainType> LibvirtSession::ChooseType(Accelerator accelerator, Logger& logger) const {
  if (kind_ == HostKind::kTest) return DomainType::kTest;
  // Asked first, whatever is wanted: an embedded libvirt now spends seconds on finding out what
  // QEMU can do, which the first machine would pay otherwise.
  if (!Offers(connection_.get(), "qemu")) return LookFailed("QEMU on this host", LastFault());
  if (accelerator == Accelerator::kTcg) return DomainType::kTcg;
  KvmProbe probe{.is_usable = true};
  if (kind_ != HostKind::kRemoteDaemon) probe = ProbeKvm(model::limits::kKvmProbe);
  if (probe.is_usable && !Offers(connection_.get(), "kvm")) {
    probe = {.cause = "libvirt finds no QEMU with KVM there"};
  }
  if (probe.is_usable) return DomainType::kKvm;
  if (accelerator == Accelerator::kKvm) {
    return Fail(ErrorCode::kUnavailable, "KVM was asked for and does not run: " + probe.cause);
  }
  logger.Warning("kvm_not_usable", {{"cause", probe.cause}, {"instead", "TCG: correct, but slow"}});
  return DomainType::kTcg;
}

Result<ports::HostFacts> LibvirtSession::Facts(DomainType type) const {
  virNodeInfo node{};
  if (virNodeGetInfo(connection_.get(), &node) != 0) {
    return LookFailed("asking for the host's size", LastFault());
  }
  auto disk = disks_->CapacityGib();
  if (!disk) return std::unexpected(disk.error());
  const auto memory_mib = static_cast<std::int64_t>(node.memory / 1024);
  return ports::HostFacts{.hypervisor = VersionText(connection_.get()),
                          .accelerator = std::string(ToString(type)),
                          .capacity = {.vms = model::limits::kVmsPerHost,
                                       .cpus = static_cast<std::int64_t>(node.cpus),
                                       .memory_mib = memory_mib,
                                       .disk_gib = *disk}};
}

Result<std::optional<SeenDomain>> LibvirtSession::See(DomainHandle handle) const {
  const LibvirtText xml(virDomainGetXMLDesc(handle.get(), 0));
  int state = VIR_DOMAIN_NOSTATE;
  int reason = 0;
  if (xml == nullptr || virDomainGetState(handle.get(), &state, &reason, 0) != 0) {
    const LibvirtFault fault = LastFault();
    // It went between two calls.
    if (fault.code == VIR_ERR_NO_DOMAIN) return std::nullopt;
    return LookFailed("reading a domain", fault);
  }
  auto parsed = ParseDomain(xml.get());
  if (!parsed) return Fail(ErrorCode::kUnavailable, "libvirt's text of a domain is unreadable");
  // A label of another ledger is a stranger's.
  if (parsed->label && parsed->label->ledger != marker_.ledger) parsed->label.reset();
  std::vector<std::string> addresses;
  if (parsed->has_visible_addresses && PowerOf(state) == model::Observed::kRunning) {
    addresses = AddressesOf(handle.get());
  }
  const bool is_persistent = virDomainIsPersistent(handle.get()) != 0;
  return SeenDomain{.handle = std::move(handle),
                    .sighting = {.id = parsed->id,
                                 .name = std::move(parsed->name),
                                 .power = PowerOf(state),
                                 .label = std::move(parsed->label),
                                 .stopped_by = StopCauseOf(state, reason),
                                 .addresses = std::move(addresses),
                                 .facts = std::move(parsed->facts)},
                    .is_persistent = is_persistent};
}

Result<std::optional<SeenDomain>> LibvirtSession::Find(const model::VmId& vm) const {
  DomainHandle handle(virDomainLookupByUUIDString(connection_.get(), ToString(vm).c_str()));
  if (handle != nullptr) {
    auto seen = See(std::move(handle));
    if (!seen || *seen) return seen;
  } else if (const LibvirtFault fault = LastFault(); fault.code != VIR_ERR_NO_DOMAIN) {
    return LookFailed("looking for a domain", fault);
  }
  if (kind_ != HostKind::kEmbedded) return std::nullopt;
  // A process that died while it started a machine may have left a QEMU that libvirt, opened
  // again, does not know.
  auto left = HasQemuProcess(model::DomainName(marker_.ledger, vm));
  if (!left) return Fail(ErrorCode::kUnavailable, left.error().detail);
  if (!*left) return std::nullopt;
  return Fail(ErrorCode::kUnavailable,
              fmt::format("libvirt knows no domain {}, but its QEMU process runs", ToString(vm)));
}

Result<std::optional<model::VmId>> LibvirtSession::FindByName(const std::string& name) const {
  const DomainHandle handle(virDomainLookupByName(connection_.get(), name.c_str()));
  if (handle == nullptr) {
    const LibvirtFault fault = LastFault();
    if (fault.code == VIR_ERR_NO_DOMAIN) return std::nullopt;
    return LookFailed("looking for a domain", fault);
  }
  model::VmId id;
  if (virDomainGetUUID(handle.get(), id.value.bytes.data()) != 0) {
    return LookFailed("looking for a domain", LastFault());
  }
  return id;
}

Status LibvirtSession::CheckNetwork(const std::string& name) const {
  const NetworkHandle network(virNetworkLookupByName(connection_.get(), name.c_str()));
  if (network == nullptr) {
    const LibvirtFault fault = LastFault();
    if (fault.code != VIR_ERR_NO_NETWORK) return LookFailed("looking for a network", fault);
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the host has no network {}: define it (virsh net-define)", name));
  }
  if (virNetworkIsActive(network.get()) == 1) return {};
  return Fail(
      ErrorCode::kUnavailable,
      fmt::format("the network {} is not active: start it (virsh net-start {})", name, name));
}

Result<std::vector<SeenDomain>> LibvirtSession::List() const {
  virDomainPtr* domains = nullptr;
  const int count = virConnectListAllDomains(connection_.get(), &domains, 0);
  if (count < 0) return LookFailed("listing domains", LastFault());
  std::vector<DomainHandle> handles;
  for (int i = 0; i < count; ++i) handles.emplace_back(domains[i]);
  std::free(domains);

  std::vector<SeenDomain> seen;
  for (DomainHandle& handle : handles) {
    auto one = See(std::move(handle));
    if (!one) return std::unexpected(one.error());
    if (*one) seen.push_back(**std::move(one));
  }
  return seen;
}

}  // namespace vmonce::hypervisor
