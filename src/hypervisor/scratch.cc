#include "hypervisor/scratch.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::string_view kPrefix = "scratch-";

}  // namespace

Result<ScratchDirectory> ScratchDirectory::Make(const std::string& parent) {
  std::string path = parent + "/" + std::string(kPrefix) + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return std::unexpected(ErrnoError(errno, path));
  return ScratchDirectory(std::move(path));
}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchDirectory::~ScratchDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ClearScratch(const std::string& parent) {
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(parent, failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(kPrefix)) {
      std::filesystem::remove_all(entry->path(), ignored);
    }
  }
}

Status MakePrivateDirectories(const std::string& path) {
  // Level by level: the umask must not decide who may read what will stand here.
  for (auto end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    const std::string level = path.substr(0, end);
    if (mkdir(level.c_str(), 0700) != 0 && errno != EEXIST) {
      return std::unexpected(ErrnoError(errno, level));
    }
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(ErrnoError(errno, path));
  }
  return {};
}

}  // namespace vmonce::hypervisor
