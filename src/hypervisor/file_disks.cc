#include "hypervisor/file_disks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/process.h"
#include "hypervisor/base_image.h"
#include "hypervisor/cloud_init.h"
#include "hypervisor/console_file.h"
#include "hypervisor/scratch.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::int64_t kGib = 1LL << 30;

// All that can fail here fails before anything is visible under its name.
std::unexpected<Error> Unavailable(const Error& error) {
  return Fail(ErrorCode::kUnavailable, error.detail);
}

Status SyncPath(const std::string& path, int flags) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (file.IsOpen() && fsync(file.get()) == 0) return {};
  return std::unexpected(ErrnoError(errno, path));
}

// Makes `temporary` appear at `path`, on disk when this returns. ok, too, when `flags` forbid to
// replace and something stands there: it is ours by its name.
Status Publish(const std::string& temporary, const std::string& path, unsigned flags) {
  if (auto synced = SyncPath(temporary, 0); !synced) return Unavailable(synced.error());
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), flags) != 0) {
    if (errno == EEXIST) return {};
    return Unavailable(ErrnoError(errno, path));
  }
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (auto synced = SyncPath(directory, O_DIRECTORY); !synced) {
    return Fail(ErrorCode::kUnknown, synced.error().detail);
  }
  return {};
}

Status RunQemuImgCreate(const ports::DiskOrder& order, const std::string& path) {
  ProcessSpec spec{.argv = {"qemu-img", "create", "-q", "-f", "qcow2"},
                   .timeout = model::limits::kToolDeadline,
                   .max_output_bytes = model::limits::kToolOutputBytes};
  if (!order.base_path.empty()) {
    spec.argv.insert(spec.argv.end(), {"-F", order.base_format, "-b", order.base_path});
  }
  spec.argv.push_back(path);
  if (order.size_gib > 0) spec.argv.push_back(fmt::format("{}G", order.size_gib));
  auto ran = RunProcess(spec);
  if (!ran) return Unavailable(ran.error());
  if (!ran->Succeeded()) {
    return Fail(ErrorCode::kUnavailable, "qemu-img create " + ran->Describe());
  }
  return {};
}

Status Remove(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return Unavailable(ErrnoError(errno, path));
}

Result<bool> Exists(const std::string& path) {
  struct stat file{};
  if (lstat(path.c_str(), &file) == 0) return true;
  if (errno == ENOENT) return false;
  return Unavailable(ErrnoError(errno, path));
}

}  // namespace

Status CheckDiskOrder(const ports::DiskOrder& order) {
  if (order.base_path.empty() && order.size_gib <= 0) {
    return Fail(ErrorCode::kRefused, "a blank disk needs a size");
  }
  return {};
}

Result<std::string> Disks::PathOfKernel(const std::string& path, const Permit&) {
  if (path.empty() || access(path.c_str(), F_OK) == 0) return path;
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return Fail(code, fmt::format("{} is not there", path));
}

Status FileDisks::CreateDisk(const ports::DiskOrder& order, const Permit& permit) {
  if (auto sane = CheckDiskOrder(order); !sane) return sane;
  const std::string path = PathOf(order.name);
  auto exists = Exists(path);
  if (!exists) return std::unexpected(exists.error());
  if (*exists) return {};
  if (!order.base_path.empty()) {
    auto size = InspectBaseImage(order.base_path, order.base_format);
    if (!size) return std::unexpected(size.error());
    if (order.size_gib > 0 && order.size_gib * kGib < *size) {
      return Fail(ErrorCode::kRefused,
                  fmt::format("a disk of {} GiB is smaller than its image ({} bytes)",
                              order.size_gib, *size));
    }
  }
  auto scratch = ScratchDirectory::Make(root_->ScratchPath());
  if (!scratch) return Unavailable(scratch.error());
  const std::string temporary = scratch->path() + "/disk";
  if (auto permitted = permit(); !permitted) return permitted;
  if (auto made = RunQemuImgCreate(order, temporary); !made) return made;
  return Publish(temporary, path, RENAME_NOREPLACE);
}

Status FileDisks::CreateSeed(const ports::SeedOrder& order, const Permit& permit) {
  auto scratch = ScratchDirectory::Make(root_->ScratchPath());
  if (!scratch) return Unavailable(scratch.error());
  auto image = BuildSeedImage(order, scratch->path());
  if (!image) return std::unexpected(image.error());
  if (chmod(image->c_str(), 0600) != 0) return Unavailable(ErrnoError(errno, *image));
  if (auto permitted = permit(); !permitted) return permitted;
  return Publish(*image, PathOf(order.name), 0);
}

Status FileDisks::Delete(const std::string& name, const Permit& permit) {
  if (auto permitted = permit(); !permitted) return permitted;
  return Remove(PathOf(name));
}

Result<std::vector<std::string>> FileDisks::Names() {
  std::vector<std::string> names;
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(root_->DisksPath(), failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    names.push_back(entry->path().filename().string());
  }
  if (failed) return Unavailable(ErrnoError(failed.value(), root_->DisksPath()));
  return names;
}

std::string FileDisks::PathOf(const std::string& name) const {
  return fmt::format("{}/{}", root_->DisksPath(), name);
}

std::string FileDisks::ConsolePathOf(const std::string& domain) const {
  return fmt::format("{}/{}.log", root_->ConsolesPath(), domain);
}

Result<ports::ConsoleChunk> FileDisks::ReadConsole(const std::string& domain, std::int64_t offset,
                                                   std::size_t most) {
  return ReadConsoleFile(ConsolePathOf(domain), offset, most);
}

Status FileDisks::DeleteConsole(const std::string& domain) { return Remove(ConsolePathOf(domain)); }

Result<std::int64_t> FileDisks::CapacityGib() {
  struct statvfs fs{};
  if (statvfs(root_->DisksPath().c_str(), &fs) != 0) {
    return Unavailable(ErrnoError(errno, root_->DisksPath()));
  }
  return static_cast<std::int64_t>(fs.f_blocks) * static_cast<std::int64_t>(fs.f_frsize) / kGib;
}

}  // namespace vmonce::hypervisor
