// The label: what is written into the hypervisor's own object, so that a machine can be known
// without the ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "model/ids.h"
#include "model/lease.h"
#include "model/vm.h"

namespace vmonce::model {

// The XML namespace of the label in libvirt's domain metadata.
inline constexpr const char* kLabelNamespace = "https://vmonce.dev/label/1";

// What the rows said when the machine was defined, of what neither the label's other parts nor the
// machine itself tell: with it the rows are written anew where the ledger was lost. Not kept up to
// date: a VM may have another name by now.
struct Origin {
  std::string name;
  int count = 1;  // Machines of the operation.
  Desired desired = Desired::kRunning;
  RestartPolicy restart = RestartPolicy::kHostFailure;
  std::string face;
  int fingerprint_version = 1;
  int disk_gib = 0;
  std::string image_id;  // Of an image of the store.
  std::string image;
  std::string disk_path;  // What the overlay stands on; empty without one.
  std::string disk_format;

  bool operator==(const Origin&) const = default;
};

struct Label {
  LedgerId ledger;
  HostId host;
  ProjectId project;
  std::string key_hash;     // 64 hexadecimal digits; empty when the request had no key.
  std::string fingerprint;  // 64 hexadecimal digits.
  OperationId operation;
  int index = 0;
  Fence fence;
  std::int64_t sequence = 0;     // The ledger's accept sequence number of the operation.
  std::optional<Origin> origin;  // Absent in labels of version 0.1.

  bool operator==(const Label&) const = default;
};

// The newest accept sequence number that the label tells of: its operation's, or that of whoever
// stamped its fence.
std::int64_t NewestSequence(const Label& label);

// The names of a VM's objects on its host. They contain the ledger id, since two ledgers may share
// a pool, and are fixed with the VM's id before any effect.
std::string DomainName(const LedgerId& ledger, const VmId& vm);
std::string DiskName(const LedgerId& ledger, const VmId& vm);
std::string SeedName(const LedgerId& ledger, const VmId& vm);

// The exact inverses: std::nullopt for every name that the functions above do not make for this
// ledger. A half-made disk under its temporary name is not a volume of ours either.
std::optional<VmId> VmOfDomainName(const LedgerId& ledger, std::string_view name);
std::optional<VmId> VmOfVolume(const LedgerId& ledger, std::string_view name);  // Disk or seed.

// Locally administered unicast (52:54:00 is QEMU's), from the VM id's last 24
// bits, which are chance.
std::string MacAddress(const VmId& vm);

}  // namespace vmonce::model
