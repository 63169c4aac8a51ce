// The effects of LibvirtDriver. Each looks first, asks its guard right before libvirt, and
// concludes by looking again.
#include <fmt/format.h>
#include <unistd.h>

#include "hypervisor/guard_check.h"
#include "hypervisor/label_xml.h"
#include "hypervisor/libvirt_driver.h"
#include "model/network.h"

namespace vmonce::hypervisor {
namespace {

using model::Observed;

using Wanted = std::function<bool(const std::optional<SeenDomain>& now)>;

// What came of a libvirt call that ended with `result` (0: it says it worked).
Status Conclude(const LibvirtSession& session, const model::VmId& vm, int result,
                const Wanted& wanted) {
  const LibvirtFault fault = result == 0 ? LibvirtFault() : LastFault();
  const bool is_reply = result == 0 || IsReply(fault, session.connection());
  if (is_reply && IsFinal(fault)) return Fail(ErrorCode::kRefused, fault.message);
  const auto now = session.Find(vm);
  if (now && wanted(*now)) return {};
  const std::string detail = result == 0 ? "it was done, and is not to be seen" : fault.message;
  // It answered that it failed, and a look proves that it did.
  if (result != 0 && is_reply && now) return Fail(ErrorCode::kUnavailable, detail);
  return Fail(ErrorCode::kUnknown, detail);
}

bool Runs(const SeenDomain& domain) { return domain.sighting.power != Observed::kStopped; }

std::unexpected<Error> NoDomain() { return Fail(ErrorCode::kNotFound, "no such domain"); }

// What is not there may be made yet: an operator's mistake is not the end of a request.
Status CheckNetwork(const LibvirtSession& session, const std::string& text) {
  const model::Network network = model::ParseNetwork(text).value_or(model::Network());
  switch (network.kind) {
    case model::NetworkKind::kUser: return {};
    case model::NetworkKind::kNamed: return session.CheckNetwork(network.name);
    case model::NetworkKind::kBridge: break;
  }
  const HostKind kind = session.kind();
  if (kind != HostKind::kEmbedded && kind != HostKind::kLocalDaemon) return {};
  if (access(fmt::format("/sys/class/net/{}/bridge", network.name).c_str(), F_OK) == 0) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("the host has no bridge {}: make it (ip link add {} type bridge)",
                          network.name, network.name));
}

unsigned UndefineFlags(HostKind kind) {
  // libvirt's test driver knows neither checkpoints nor firmware.
  const unsigned flags = VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA;
  if (kind == HostKind::kTest) return flags;
  return flags | VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | VIR_DOMAIN_UNDEFINE_NVRAM;
}

// An asking of the guest: whether it follows is not ours to say.
Status Asked(const LibvirtSession& session, const model::VmId& vm, int result) {
  if (result == 0) return {};
  const LibvirtFault fault = LastFault();
  if (!IsReply(fault, session.connection())) return Fail(ErrorCode::kUnknown, fault.message);
  if (IsFinal(fault)) return Fail(ErrorCode::kRefused, fault.message);
  const auto now = session.Find(vm);
  const bool is_stopped = now && *now && !Runs(**now);
  return Fail(is_stopped ? ErrorCode::kConflict : ErrorCode::kUnavailable, fault.message);
}

}  // namespace

Status LibvirtDriver::CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) {
  auto owned = FindOwned(order.vm, guard);
  if (!owned) return std::unexpected(owned.error());
  return owned->session->disks().CreateDisk(order, PermitOf(guard));
}

Result<ports::ImageTransfer> LibvirtDriver::BringImage(const ports::ImageOrder& order,
                                                       const ports::EffectGuard& guard) {
  auto owned = FindOwned(order.vm, guard);
  if (!owned) return std::unexpected(owned.error());
  has_no_images_ = false;
  auto upload = uploads_.Take(order.digest, clock_.Monotonic());
  if (!upload) {
    return ports::ImageTransfer{
        .sent = uploads_.SentOf(order.digest), .is_complete = false, .is_others = true};
  }
  // What went over a connection that is no more may be lost.
  if (upload->session == nullptr || !upload->session->IsAlive()) {
    *upload = {.session = owned->session};
  }
  const Instant until = clock_.Monotonic() + options_.image_slice;
  auto transfer = upload->session->disks().SendImage(order, upload->sent, PermitOf(guard),
                                                     [&] { return clock_.Monotonic() >= until; });
  const bool goes_on = transfer && !transfer->is_complete;
  if (goes_on) {
    uploads_.Keep(order.digest, {.sent = transfer->sent, .session = upload->session},
                  clock_.Monotonic());
  } else {
    uploads_.End(order.digest);
  }
  return transfer;
}

Result<std::vector<Digest>> LibvirtDriver::ListImages() {
  if (has_no_images_) return std::vector<Digest>();
  auto session = sessions_.Take();
  if (!session) return std::unexpected(session.error());
  auto images = (*session)->disks().Images();
  has_no_images_ = images && images->empty();
  return images;
}

Status LibvirtDriver::RemoveImage(const Digest& digest) {
  auto session = sessions_.Take();
  if (!session) return std::unexpected(session.error());
  if (!uploads_.Take(digest, clock_.Monotonic())) {
    return Fail(ErrorCode::kUnavailable, "the image is being sent");
  }
  const Status removed = (*session)->disks().RemoveImage(digest);
  uploads_.End(digest);
  return removed;
}

Status LibvirtDriver::CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) {
  auto owned = FindOwned(order.vm, guard);
  if (!owned) return std::unexpected(owned.error());
  // Its guest is reading it, or has; a new one would change under its feet.
  if (owned->domain && Runs(*owned->domain)) return {};
  return owned->session->disks().CreateSeed(order, PermitOf(guard));
}

Status LibvirtDriver::DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  return DeleteVolume(*owned, model::DiskName(owned->session->marker().ledger, vm), guard);
}

Status LibvirtDriver::DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  return DeleteVolume(*owned, model::SeedName(owned->session->marker().ledger, vm), guard);
}

Status LibvirtDriver::DeleteVolume(const Owned& owned, const std::string& name,
                                   const ports::EffectGuard& guard) {
  if (owned.domain && Runs(*owned.domain)) {
    return Fail(ErrorCode::kConflict, "the domain that uses it runs");
  }
  return owned.session->disks().Delete(name, PermitOf(guard));
}

Status LibvirtDriver::Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) {
  auto owned = FindOwned(order.vm, guard);
  if (!owned) return std::unexpected(owned.error());
  auto holder = owned->session->FindByName(order.name);
  if (!holder) return std::unexpected(holder.error());
  if (*holder && **holder != order.vm) {
    return Fail(ErrorCode::kConflict, fmt::format("the name {} belongs to domain {}; it was not "
                                                  "touched",
                                                  order.name, ToString(**holder)));
  }
  ports::DomainOrder stamped = order;
  stamped.label.fence = guard.fence;
  if (owned->domain && Runs(*owned->domain)) return SetLabel(*owned, stamped.label, guard);
  return DefineNew(*owned, stamped, guard);
}

Status LibvirtDriver::DefineNew(const Owned& owned, const ports::DomainOrder& order,
                                const ports::EffectGuard& guard) {
  const LibvirtSession& session = *owned.session;
  if (auto network = CheckNetwork(session, order.spec.network); !network) return network;
  Disks& disks = session.disks();
  DomainPlaces places{.type = owned.type, .console_path = disks.ConsolePathOf(order.name)};
  if (!order.disk_name.empty()) places.disk_path = disks.PathOf(order.disk_name);
  if (!order.seed_name.empty()) places.seed_path = disks.PathOf(order.seed_name);
  // A kernel that is not there would look like any QEMU that dies at its start.
  const model::Image& image = order.spec.image;
  if (image.kind == model::ImageKind::kKernel) {
    auto kernel = disks.PathOfKernel(image.kernel_path, PermitOf(guard));
    auto initrd = disks.PathOfKernel(image.initrd_path, PermitOf(guard));
    if (!kernel || !initrd) {
      return Context("image " + image.name, kernel ? initrd.error() : kernel.error());
    }
    places.kernel_path = *std::move(kernel);
    places.initrd_path = *std::move(initrd);
  }
  auto xml = BuildDomainXml(order, places);
  if (!xml) return std::unexpected(xml.error());
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;
  const DomainHandle made(virDomainDefineXMLFlags(session.connection(), xml->c_str(), 0));
  return Conclude(session, order.vm, made == nullptr ? -1 : 0,
                  [&](const auto& now) { return now && now->sighting.label == order.label; });
}

Status LibvirtDriver::StampFence(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  if (!owned->domain) return NoDomain();
  model::Label label = *owned->domain->sighting.label;
  label.fence = guard.fence;
  return SetLabel(*owned, label, guard);
}

Status LibvirtDriver::SetLabel(const Owned& owned, const model::Label& label,
                               const ports::EffectGuard& guard) {
  const SeenDomain& domain = *owned.domain;
  if (domain.sighting.label == label) return {};
  auto xml = BuildLabelXml(label);
  if (!xml) return std::unexpected(xml.error());
  unsigned flags = domain.is_persistent ? VIR_DOMAIN_AFFECT_CONFIG : 0;
  if (Runs(domain)) flags |= VIR_DOMAIN_AFFECT_LIVE;
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;
  const int result =
      virDomainSetMetadata(domain.handle.get(), VIR_DOMAIN_METADATA_ELEMENT, xml->c_str(),
                           kLabelPrefix, model::kLabelNamespace, flags);
  return Conclude(*owned.session, domain.sighting.id, result,
                  [&](const auto& now) { return now && now->sighting.label == label; });
}

Status LibvirtDriver::Undefine(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  const LibvirtSession& session = *owned->session;
  if (owned->domain) {
    if (Runs(*owned->domain)) return Fail(ErrorCode::kConflict, "the domain runs");
    if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;
    const int result =
        virDomainUndefineFlags(owned->domain->handle.get(), UndefineFlags(session.kind()));
    bool runs = false;
    // Undefining while a start hangs is answered with success and leaves QEMU running.
    Status done = Conclude(session, vm, result, [&](const auto& now) {
      runs = now && Runs(*now);
      return !now;
    });
    if (runs) return Fail(ErrorCode::kConflict, "the domain runs");
    if (!done) return done;
  }
  return session.disks().DeleteConsole(model::DomainName(session.marker().ledger, vm));
}

Status LibvirtDriver::Start(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  if (!owned->domain) return NoDomain();
  const Observed power = owned->domain->sighting.power;
  if (power == Observed::kRunning) return {};
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;
  const virDomainPtr domain = owned->domain->handle.get();
  const int result = power == Observed::kPaused ? virDomainResume(domain) : virDomainCreate(domain);
  return Conclude(*owned->session, vm, result,
                  [](const auto& now) { return now && now->sighting.power == Observed::kRunning; });
}

Status LibvirtDriver::Destroy(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  if (!owned->domain || !Runs(*owned->domain)) return {};
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;
  const int result = virDomainDestroy(owned->domain->handle.get());
  return Conclude(*owned->session, vm, result, [](const auto& now) { return !now || !Runs(*now); });
}

Status LibvirtDriver::Shutdown(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  if (!owned->domain) return NoDomain();
  if (!Runs(*owned->domain)) return Fail(ErrorCode::kConflict, "the domain does not run");
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;
  return Asked(*owned->session, vm, virDomainShutdown(owned->domain->handle.get()));
}

Status LibvirtDriver::Reboot(const model::VmId& vm, const ports::EffectGuard& guard) {
  auto owned = FindOwned(vm, guard);
  if (!owned) return std::unexpected(owned.error());
  if (!owned->domain) return NoDomain();
  if (!Runs(*owned->domain)) return Fail(ErrorCode::kConflict, "the domain does not run");
  if (auto in_time = CheckDeadline(guard, clock_); !in_time) return in_time;
  const virDomainPtr domain = owned->domain->handle.get();
  // libvirt's test driver cannot reset.
  const bool is_test = owned->session->kind() == HostKind::kTest;
  return Asked(*owned->session, vm,
               is_test ? virDomainReboot(domain, 0) : virDomainReset(domain, 0));
}

}  // namespace vmonce::hypervisor
