// One live connection to a libvirt host and what was learnt of it.
#pragma once

#include <libvirt/libvirt.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "hypervisor/disks.h"
#include "hypervisor/domain_xml.h"
#include "hypervisor/embedded_root.h"
#include "hypervisor/event_loop.h"
#include "hypervisor/host_uri.h"
#include "hypervisor/kvm_probe.h"
#include "hypervisor/libvirt_handles.h"
#include "hypervisor/pool_disks.h"
#include "model/image_limits.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

struct LibvirtOptions {
  HostUri uri;
  Accelerator accelerator = Accelerator::kAuto;
  std::string pool;       // Daemons only, as in HostOptions.
  std::string pool_path;  // "
  std::string scratch;    // A private directory.
  Milliseconds settle_time{0};
  std::int64_t console_bytes = 0;     // Embedded only: what a guest's console may hold.
  std::shared_ptr<EventLoop> events;  // See HostOptions.
  Milliseconds image_slice = model::limits::kImageSlice;  // Remote daemons: see BringImage.
};

struct SeenDomain {
  DomainHandle handle;
  ports::DomainSighting sighting;
  bool is_persistent = true;  // Has a definition that outlives its running.
};

class LibvirtSession final {
 public:
  // Opens the connection. kUnavailable when that fails. `root` is null but for embedded hosts.
  static Result<std::shared_ptr<LibvirtSession>> Open(const LibvirtOptions& options,
                                                      std::shared_ptr<EmbeddedRoot> root);
  ~LibvirtSession();

  // Whoever wrote them. kConflict: one cannot be read.
  Result<std::vector<model::HostMarker>> ReadMarkers();
  // To be called, with ok as the answer, before anything below is believed. Not while other calls
  // use the session, unless it is the same marker again.
  Result<bool> CheckMarker(const model::HostMarker& marker, ports::MarkerPolicy policy);

  bool IsAlive() const { return virConnectIsAlive(connection_.get()) == 1; }
  virConnectPtr connection() const { return connection_.get(); }
  HostKind kind() const { return kind_; }
  const model::HostMarker& marker() const { return marker_; }
  Disks& disks() const { return *disks_; }

  // What an operator's choice comes to on this host; the local probe takes up to
  // limits::kKvmProbe. kUnavailable: KVM was asked for and does not run.
  Result<DomainType> ChooseType(Accelerator accelerator, Logger& logger) const;
  Result<ports::HostFacts> Facts(DomainType type) const;

  // Absent: libvirt's typed not-found and nothing else. Errors are kUnavailable.
  Result<std::optional<SeenDomain>> Find(const model::VmId& vm) const;
  // The UUID of the domain of that name.
  Result<std::optional<model::VmId>> FindByName(const std::string& name) const;
  Result<std::vector<SeenDomain>> List() const;
  // ok: there is an active network of that name. kUnavailable otherwise.
  Status CheckNetwork(const std::string& name) const;

  LibvirtSession(HostKind kind, virConnectPtr connection, std::shared_ptr<EmbeddedRoot> root);

 private:
  Result<std::optional<SeenDomain>> See(DomainHandle handle) const;

  const HostKind kind_;
  const std::unique_ptr<virConnect, LibvirtFree<virConnectClose>> connection_;
  const std::shared_ptr<EmbeddedRoot> root_;
  std::unique_ptr<Disks> disks_;     // After the connection, which it uses.
  PoolDisks* pool_disks_ = nullptr;  // The same object, where it is one.
  model::HostMarker marker_;
};

}  // namespace vmonce::hypervisor
