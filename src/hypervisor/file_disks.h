// Disks as files beneath an embedded host's root: made under a temporary name by qemu-img, and
// published without replacing.
#pragma once

#include <string>

#include "hypervisor/disks.h"
#include "hypervisor/embedded_root.h"

namespace vmonce::hypervisor {

class FileDisks final : public Disks {
 public:
  // `root` is shared with the driver: an abandoned call must keep the root's lock.
  explicit FileDisks(std::shared_ptr<EmbeddedRoot> root) : root_(std::move(root)) {}

  Status CreateDisk(const ports::DiskOrder& order, const Permit& permit) override;
  Status CreateSeed(const ports::SeedOrder& order, const Permit& permit) override;
  Status Delete(const std::string& name, const Permit& permit) override;
  Result<std::vector<std::string>> Names() override;
  std::string PathOf(const std::string& name) const override;
  std::string ConsolePathOf(const std::string& domain) const override;
  Result<ports::ConsoleChunk> ReadConsole(const std::string& domain, std::int64_t offset,
                                          std::size_t most) override;
  Status DeleteConsole(const std::string& domain) override;
  Result<std::int64_t> CapacityGib() override;

 private:
  const std::shared_ptr<EmbeddedRoot> root_;
};

}  // namespace vmonce::hypervisor
