// The door to one host's hypervisor. Calls block. Answers are values (protocol section 9):
//   ok            done, and observed to be done
//   kRefused      nothing happened, and the same order never succeeds there
//   kConflict     something that is not ours stands in the way; it was not touched
//   kUnavailable  nothing happened; try later
//   kUnknown      it may have happened, or may still happen: look first. A call past its deadline
//   is kUnknown, and so is
//                 every error of the hypervisor that does not prove otherwise
//   kFenced       the lease deadline has passed, or the object's label shows a higher fence;
//   nothing happened kNotFound     only where a call says so, and only as the hypervisor's own
//   typed not-found
// Every effect converges: run twice, or onto a half-done earlier run, it ends in the same object.
// No effect ever overwrites or removes what does not carry our ledger's label or name.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/host.h"
#include "model/ids.h"
#include "model/image.h"
#include "model/label.h"
#include "model/lease.h"
#include "model/vm.h"

namespace vmonce::ports {

// Stands beside every effect: an effect is refused when `deadline` (the lease's) has passed before
// it begins, or when the object's label carries a higher fence.
struct EffectGuard {
  model::Fence fence;
  Instant deadline = kNever;
  // The same as it is now: a lease may be renewed, or lost, while a call waits for its turn. Shared
  // with the lease, since a call may outlive it. Absent: `deadline` stands.
  std::shared_ptr<const std::atomic<Instant>> renewed;

  Instant Deadline() const { return renewed ? renewed->load(std::memory_order_acquire) : deadline; }
};

struct HostFacts {
  std::string hypervisor;     // "QEMU 7.2.0"
  std::string accelerator;    // "kvm", "tcg", "test", "simulated"
  model::Resources capacity;  // What the machine has: cpus, memory; disk of the pool.
  bool wrote_marker = false;
};

enum class MarkerPolicy {
  kRequire,      // Registered before: the marker must be there and be ours.
  kWriteIfNone,  // First registration: write it when no marker is there.
};

// What a machine is made of, as the hypervisor's own definition of it says. For rebuilding a lost
// ledger; nothing else is decided by it. What the definition does not say is left at its default.
struct DomainFacts {
  int cpus = 0;
  int memory_mib = 0;
  std::string mac;
  std::string network;                   // See model/network.h.
  std::vector<model::Forward> forwards;  // The host ports that lead to it, in the order asked for.
  std::string kernel_path;
  std::string initrd_path;
  std::string cmdline;

  bool operator==(const DomainFacts&) const = default;
};

struct DomainSighting {
  model::VmId id;
  std::string name;
  model::Observed power = model::Observed::kUnknown;
  std::optional<model::Label> label;  // Absent: not ours.
  // Of a stopped one. What the hypervisor does not know (it, or its host, was started since) is
  // kHost.
  model::StopCause stopped_by = model::StopCause::kNone;
  // The guest's, as the host's DHCP leases or neighbours tell, while it runs in a named network or
  // on a bridge; what the host does not know is not there. For people: nothing is decided by them.
  std::vector<std::string> addresses;
  DomainFacts facts;
};

struct DiskOrder {
  model::VmId vm;
  std::string name;       // DiskName(); the volume or file of that name.
  std::string base_path;  // Backing file; empty for a blank disk.
  std::string base_format;
  int size_gib = 0;  // 0: the base's size.
};

struct SeedOrder {
  model::VmId vm;
  std::string name;  // SeedName().
  std::string instance_id;
  std::string hostname;
  std::vector<std::string> ssh_keys;
  std::string user_data;  // Clear text; lives only as long as the call.
};

struct DomainOrder {
  model::VmId vm;
  std::string name;  // DomainName().
  model::Label label;
  model::VmSpec spec;
  std::string mac;
  std::string disk_name;  // Empty: the image has no disk.
  std::string seed_name;
  std::vector<model::Forward> forwards;  // Reserved ones, which QEMU is to listen for.
};

struct ConsoleChunk {
  std::string data;
  std::int64_t next_offset = 0;  // Where the next read goes on.
};

// A disk or seed of our ledger on the host.
struct VolumeSighting {
  std::string name;
  model::VmId vm;
};

// One host. Thread-safe: any number of threads may call; the adapter bounds how many calls are out
// at once and answers kUnavailable at once when the host hangs.
class Hypervisor {
 public:
  virtual ~Hypervisor() = default;

  // Connects when needed, and checks the marker before anything else is believed. kConflict:
  // another marker is there, or none where one is required. Every other call connects by itself
  // with the marker of the last successful Connect and is kUnavailable when that fails.
  virtual Result<HostFacts> Connect(const model::HostMarker& marker, MarkerPolicy policy) = 0;

  // Connects when needed, and answers the marker that is there, whose ever it is; std::nullopt when
  // there is none. Writes nothing, and proves nothing for other calls. kConflict: several, or one
  // that cannot be read.
  virtual Result<std::optional<model::HostMarker>> ReadMarker() = 0;

  // How long an abandoned call may still take effect after its process died.
  virtual Milliseconds SettleTime() const = 0;
  // Calls for this VM that were given up at their deadline and have not returned. While there are
  // any, absence proves nothing.
  virtual int CallsOut(const model::VmId& vm) const = 0;

  // Looks. std::nullopt is the hypervisor's typed not-found, never an empty list or a text.
  virtual Result<std::optional<DomainSighting>> Look(const model::VmId& vm) = 0;
  // Every domain of the host, ours or not, running or not; complete, or an error.
  virtual Result<std::vector<DomainSighting>> List() = 0;
  // Disks and seeds whose names carry our ledger id.
  virtual Result<std::vector<VolumeSighting>> ListVolumes() = 0;

  // Those of `ports` that some program of the host, QEMU or another, has at `address`, so that a
  // machine that is to listen there would not start. kRefused: that cannot be told of this host.
  virtual Result<std::vector<model::HostPort>> PortsInUse(
      const std::string& address, const std::vector<model::HostPort>& ports) = 0;

  // An overlay (or blank) qcow2, made under a temporary name and published without replacing: when
  // the name is there already, it is ours by name and is kept. kNotFound: the base is not there.
  // kRefused: it is not an image of that format.
  virtual Status CreateDisk(const DiskOrder& order, const EffectGuard& guard) = 0;
  // ok when it is gone, or was never there.
  virtual Status DeleteDisk(const model::VmId& vm, const EffectGuard& guard) = 0;

  // A cloud-init NoCloud image (volume id CIDATA). Replaced by one of the same order; a seed is
  // derived data.
  virtual Status CreateSeed(const SeedOrder& order, const EffectGuard& guard) = 0;
  virtual Status DeleteSeed(const model::VmId& vm, const EffectGuard& guard) = 0;

  // Looks by UUID and by name first: ours → converges to the order (its label's fence grows, a
  // running domain is left running), a stranger's → kConflict. kNotFound: the image's kernel or
  // initrd is not there.
  virtual Status Define(const DomainOrder& order, const EffectGuard& guard) = 0;
  // Writes a higher fence into the label. kNotFound: no such domain.
  virtual Status StampFence(const model::VmId& vm, const EffectGuard& guard) = 0;
  // ok when there is no such domain any more. kConflict: it runs, or is not ours.
  virtual Status Undefine(const model::VmId& vm, const EffectGuard& guard) = 0;

  // ok: observed running. kNotFound: no such domain.
  virtual Status Start(const model::VmId& vm, const EffectGuard& guard) = 0;
  // Power off at once. ok: observed not running, or no such domain.
  virtual Status Destroy(const model::VmId& vm, const EffectGuard& guard) = 0;
  // Asks the guest; ok means asked. kConflict: it does not run.
  virtual Status Shutdown(const model::VmId& vm, const EffectGuard& guard) = 0;
  // Resets the running guest. kConflict: it does not run.
  virtual Status Reboot(const model::VmId& vm, const EffectGuard& guard) = 0;

  // The serial console from `offset` on, at most `most` bytes; a negative offset counts from the
  // end. kNotFound: the VM has no console yet.
  virtual Result<ConsoleChunk> ReadConsole(const model::VmId& vm, std::int64_t offset,
                                           std::size_t most) = 0;
};

}  // namespace vmonce::ports
