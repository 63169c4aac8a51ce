// Where a host keeps disks, seeds and console logs: plain files beside the embedded QEMU
// (FileDisks), or volumes of a libvirt pool (PoolDisks).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

// Asked right before an effect begins: whether it still may. Its error is answered.
using Permit = std::function<Status()>;

// The effects answer as ports/hypervisor.h says of CreateDisk and the others; who owns what has
// been checked before. Thread-safe.
class Disks {
 public:
  virtual ~Disks() = default;

  virtual Status CreateDisk(const ports::DiskOrder& order, const Permit& permit) = 0;
  virtual Status CreateSeed(const ports::SeedOrder& order, const Permit& permit) = 0;
  // ok when it is gone, or was never there.
  virtual Status Delete(const std::string& name, const Permit& permit) = 0;
  // Of every disk and seed, whoever made it; complete, or an error.
  virtual Result<std::vector<std::string>> Names() = 0;

  // Where the hypervisor finds the disk or seed, and writes the console, whether it is there or
  // not.
  virtual std::string PathOf(const std::string& name) const = 0;
  virtual std::string ConsolePathOf(const std::string& domain) const = 0;
  // Where the hypervisor finds a kernel or initrd that stands at `path` on this machine; brought
  // there first where it cannot be seen from there. kRefused: it is not here.
  virtual Result<std::string> PathOfKernel(const std::string& path, const Permit& permit);
  virtual Result<ports::ConsoleChunk> ReadConsole(const std::string& domain, std::int64_t offset,
                                                  std::size_t most) = 0;
  virtual Status DeleteConsole(const std::string& domain) = 0;

  virtual Result<std::int64_t> CapacityGib() = 0;

  // Sends the next piece of a stored image, from `offset` on and until `is_over`, where its file
  // cannot be seen from there; otherwise it is complete. After an error all of it is sent again.
  virtual Result<ports::ImageTransfer> SendImage(const ports::ImageOrder&, std::int64_t /*offset*/,
                                                 const Permit&,
                                                 const std::function<bool()>& /*is_over*/) {
    return ports::ImageTransfer{};
  }
  // As ports::Hypervisor says of ListImages and RemoveImage.
  virtual Result<std::vector<Digest>> Images() { return std::vector<Digest>(); }
  virtual Status RemoveImage(const Digest&) { return {}; }
};

// What is told of an order whose own figures are wrong, before anything is tried. kRefused.
Status CheckDiskOrder(const ports::DiskOrder& order);

}  // namespace vmonce::hypervisor
