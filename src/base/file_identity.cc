#include "base/file_identity.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"

namespace vmonce {
namespace {

std::int64_t Nanoseconds(const timespec& at) { return at.tv_sec * 1'000'000'000LL + at.tv_nsec; }

}  // namespace

Result<std::optional<FileIdentity>> IdentityOf(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return std::unexpected(ErrnoError(errno, path));
  }
  return FileIdentity{.bytes = file.st_size,
                      .modified_ns = Nanoseconds(file.st_mtim),
                      .inode = static_cast<std::int64_t>(file.st_ino),
                      .since = FromUnixMs(Nanoseconds(file.st_ctim) / 1'000'000)};
}

}  // namespace vmonce
