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

namespace vmonce::model {

// The XML namespace of the label in libvirt's domain metadata.
inline constexpr const char* kLabelNamespace = "https://vmonce.dev/label/1";

struct Label {
  LedgerId ledger;
  HostId host;
  ProjectId project;
  std::string key_hash;     // 64 hexadecimal digits; empty when the request had no key.
  std::string fingerprint;  // 64 hexadecimal digits.
  OperationId operation;
  int index = 0;
  Fence fence;
  std::int64_t sequence = 0;  // The ledger's accept sequence number of the operation.

  bool operator==(const Label&) const = default;
};

// The names of a VM's objects on its host. They contain the ledger id, since two ledgers may share
// a pool, and are fixed with the VM's id before any effect.
std::string DomainName(const LedgerId& ledger, const VmId& vm);
std::string DiskName(const LedgerId& ledger, const VmId& vm);
std::string SeedName(const LedgerId& ledger, const VmId& vm);

// A disk of the image store in the pool of another machine: named by what it holds.
std::string ImageVolumeName(const LedgerId& ledger, const Digest& digest);

// The exact inverses: std::nullopt for every name that the functions above do not make for this
// ledger. A half-made disk under its temporary name is not a volume of ours either.
std::optional<VmId> VmOfDomainName(const LedgerId& ledger, std::string_view name);
std::optional<VmId> VmOfVolume(const LedgerId& ledger, std::string_view name);  // Disk or seed.
std::optional<Digest> ImageOfVolume(const LedgerId& ledger, std::string_view name);

// Locally administered unicast (52:54:00 is QEMU's), from the VM id's last 24
// bits, which are chance.
std::string MacAddress(const VmId& vm);

}  // namespace vmonce::model
