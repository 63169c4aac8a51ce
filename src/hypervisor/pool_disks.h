// Disks as volumes of a libvirt storage pool, where the hypervisor is a daemon, here or elsewhere.
// Console logs are files of the pool's directory, read through libvirt.
#pragma once

#include <libvirt/libvirt.h>

#include <string>

#include "base/clock.h"
#include "hypervisor/disks.h"
#include "hypervisor/host_uri.h"
#include "hypervisor/libvirt_handles.h"
#include "model/host.h"

namespace vmonce::hypervisor {

struct PoolOptions {
  HostKind kind = HostKind::kLocalDaemon;
  std::string name;
  std::string path;     // A missing pool is made there; empty: it must exist.
  std::string scratch;  // A private directory for seeds on their way.
};

class PoolDisks final : public Disks {
 public:
  // Finds or makes the pool. kUnavailable: it is not there, or does not answer. `connection`
  // outlives the object.
  static Result<std::unique_ptr<PoolDisks>> Open(virConnectPtr connection, PoolOptions options);
  PoolDisks(virConnectPtr connection, PoolHandle pool, PoolOptions options, std::string target);

  Result<std::vector<model::HostMarker>> ReadMarkers();
  // The marker as an empty volume. Answers whether it wrote one; kConflict as Hypervisor::Connect
  // says.
  Result<bool> CheckMarker(const model::HostMarker& marker, ports::MarkerPolicy policy);

  Status CreateDisk(const ports::DiskOrder& order, const Permit& permit) override;
  Status CreateSeed(const ports::SeedOrder& order, const Permit& permit) override;
  Status Delete(const std::string& name, const Permit& permit) override;
  Result<std::vector<std::string>> Names() override;
  std::string PathOf(const std::string& name) const override;
  std::string ConsolePathOf(const std::string& domain) const override;
  // On another machine: a volume named by the file's content, kept for all machines to come.
  Result<std::string> PathOfKernel(const std::string& path, const Permit& permit) override;
  Result<ports::ConsoleChunk> ReadConsole(const std::string& domain, std::int64_t offset,
                                          std::size_t most) override;
  Status DeleteConsole(const std::string& domain) override;
  Result<std::int64_t> CapacityGib() override;

 private:
  // Null: the typed not-found.
  Result<VolumeHandle> Find(const std::string& name);
  // The base's size in bytes, once it is known to be a lone image of its format.
  Result<std::int64_t> InspectBase(const ports::DiskOrder& order);
  Status Create(const std::string& name, const std::string& xml, const Permit& permit);
  Status Upload(const std::string& name, const std::string& bytes);

  virConnectPtr connection_;
  PoolHandle pool_;
  const PoolOptions options_;
  const std::string target_;  // The pool's directory.
};

}  // namespace vmonce::hypervisor
