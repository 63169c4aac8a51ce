#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/unique_fd.h"

namespace vmonce {
namespace {

std::string DirectoryOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::unexpected<Error> FailErrno(int error_number, std::string_view what) {
  return std::unexpected(ErrnoError(error_number, what));
}

Status WriteAll(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t written = write(fd, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FailErrno(errno, fmt::format("write {}", path));
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status SyncDirectoryOf(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  const UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.IsOpen() || fsync(fd.get()) != 0) {
    return Fail(ErrorCode::kUnknown, fmt::format("sync directory {}: {}", directory,
                                                 std::generic_category().message(errno)));
  }
  return {};
}

// A complete, synced file beside its destination that is removed unless it was published.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& destination)
      : path_(fmt::format("{}/.{}.XXXXXX.tmp", DirectoryOf(destination), NameOf(destination))) {}
  ~TemporaryFile() {
    if (exists_) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // The descriptor of the file, which is on disk.
  Result<UniqueFd> Fill(std::string_view data, mode_t mode) {
    constexpr int kSuffixLength = 4;  // ".tmp"
    UniqueFd fd(mkostemps(path_.data(), kSuffixLength, O_CLOEXEC));
    if (!fd.IsOpen()) return FailErrno(errno, fmt::format("create {}", path_));
    exists_ = true;
    if (auto written = WriteAll(fd.get(), data, path_); !written) {
      return std::unexpected(written.error());
    }
    if (fchmod(fd.get(), mode) != 0) return FailErrno(errno, fmt::format("set mode of {}", path_));
    if (fsync(fd.get()) != 0) return FailErrno(errno, fmt::format("sync {}", path_));
    return fd;
  }

  Status MoveOver(const std::string& destination) {
    if (rename(path_.c_str(), destination.c_str()) != 0) {
      return FailErrno(errno, fmt::format("rename to {}", destination));
    }
    exists_ = false;
    return {};
  }

  Status LinkTo(const std::string& destination) {
    if (link(path_.c_str(), destination.c_str()) != 0) {
      return FailErrno(errno, fmt::format("link to {}", destination));
    }
    return {};
  }

 private:
  std::string path_;
  bool exists_ = false;
};

}  // namespace

Error ErrnoError(int error_number, std::string_view what) {
  const auto code = [&] {
    switch (error_number) {
      case ENOENT:
      case ENOTDIR: return ErrorCode::kNotFound;
      case EEXIST:
      case ENOTEMPTY: return ErrorCode::kConflict;
      case ENOSPC:
      case EDQUOT:
      case EMFILE:
      case ENFILE:
      case ENOMEM:
      case EAGAIN:
      case EBUSY:
      case ETXTBSY:
      case ETIMEDOUT: return ErrorCode::kUnavailable;
      case EACCES:
      case EPERM:
      case EROFS:
      case EOPNOTSUPP:
      case ENOSYS:
      case EXDEV: return ErrorCode::kRefused;
      case EINVAL:
      case EISDIR:
      case ELOOP:
      case ENAMETOOLONG:
      case EFBIG:
      case E2BIG:
      case ENOEXEC: return ErrorCode::kInvalid;
      default: return ErrorCode::kInternal;
    }
  }();
  return Error{code, fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

Result<std::string> ReadWholeFile(const std::string& path, std::size_t max_bytes) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.IsOpen()) return FailErrno(errno, fmt::format("open {}", path));
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) return FailErrno(errno, fmt::format("stat {}", path));
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kInvalid, fmt::format("{} is not a regular file", path));
  }
  // The size is a hint: files in /proc have none, and another process may be writing.
  std::string data;
  char buffer[16384];
  while (true) {
    const ssize_t got = read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(errno, fmt::format("read {}", path));
    if (got == 0) return data;
    if (data.size() + static_cast<std::size_t>(got) > max_bytes) {
      return Fail(ErrorCode::kInvalid, fmt::format("{} is longer than {} bytes", path, max_bytes));
    }
    data.append(buffer, static_cast<std::size_t>(got));
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view data, mode_t mode) {
  TemporaryFile file(path);
  if (auto filled = file.Fill(data, mode); !filled) return std::unexpected(filled.error());
  if (auto moved = file.MoveOver(path); !moved) return moved;
  return SyncDirectoryOf(path);
}

Status CreateFileAtomically(const std::string& path, std::string_view data, mode_t mode) {
  TemporaryFile file(path);
  if (auto filled = file.Fill(data, mode); !filled) return std::unexpected(filled.error());
  if (auto linked = file.LinkTo(path); !linked) return linked;
  return SyncDirectoryOf(path);
}

Result<UniqueFd> CreateFileLocked(const std::string& path, std::string_view data, mode_t mode) {
  TemporaryFile file(path);
  auto filled = file.Fill(data, mode);
  if (!filled) return filled;
  if (flock(filled->get(), LOCK_EX | LOCK_NB) != 0) {
    return FailErrno(errno, fmt::format("lock {}", path));
  }
  if (auto linked = file.LinkTo(path); !linked) return std::unexpected(linked.error());
  if (auto synced = SyncDirectoryOf(path); !synced) return std::unexpected(synced.error());
  return filled;
}

}  // namespace vmonce
