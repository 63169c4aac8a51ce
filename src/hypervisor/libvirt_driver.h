// Any libvirt host behind the hypervisor's port. Calls block for as long as libvirt does;
// HostThreads bounds them.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "hypervisor/image_uploads.h"
#include "hypervisor/libvirt_sessions.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

// Thread-safe. Connects anew, with the marker of the last successful Connect, when the connection
// died, at most every limits::kReconnectEvery. An effect is concluded by looking: what libvirt's
// error codes do not prove is found out, or answered as kUnknown.
class LibvirtDriver final : public ports::Hypervisor {
 public:
  LibvirtDriver(LibvirtOptions options, Clock& clock, Threads& threads, Logger& logger);
  ~LibvirtDriver() override;

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
  Result<ports::ImageTransfer> BringImage(const ports::ImageOrder& order,
                                          const ports::EffectGuard& guard) override;
  Result<std::vector<Digest>> ListImages() override;
  Status RemoveImage(const Digest& digest) override;
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
  using Session = LibvirtSessions::Session;

  // A domain that an effect is about, found to be ours and not of a higher fence; or none.
  struct Owned {
    Session session;
    std::optional<SeenDomain> domain;
    DomainType type;  // That new definitions get.
  };

  Result<Owned> FindOwned(const model::VmId& vm, const ports::EffectGuard& guard);
  Status SetLabel(const Owned& owned, const model::Label& label, const ports::EffectGuard& guard);
  Status DefineNew(const Owned& owned, const ports::DomainOrder& order,
                   const ports::EffectGuard& guard);
  Status DeleteVolume(const Owned& owned, const std::string& name, const ports::EffectGuard& guard);
  std::function<Status()> PermitOf(const ports::EffectGuard& guard);

  const LibvirtOptions options_;
  Clock& clock_;
  LibvirtSessions sessions_;
  ImageUploads uploads_;  // After the sessions, of which it keeps some.
  // Once none was found, until this process sends one: no sweep has to ask again.
  std::atomic<bool> has_no_images_ = false;
};

}  // namespace vmonce::hypervisor
