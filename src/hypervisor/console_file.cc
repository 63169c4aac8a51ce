#include "hypervisor/console_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/unique_fd.h"

namespace vmonce::hypervisor {

ConsoleRange RangeOf(std::int64_t offset, std::size_t most, std::int64_t size) {
  const std::int64_t wanted = offset < 0 ? size + std::max(offset, -size) : offset;
  const std::int64_t begin = std::clamp<std::int64_t>(wanted, 0, size);
  const auto length = static_cast<std::int64_t>(
      std::min<std::uint64_t>(most, static_cast<std::uint64_t>(size - begin)));
  return {.begin = begin, .end = begin + length};
}

Result<ports::ConsoleChunk> ReadConsoleFile(const std::string& path, std::int64_t offset,
                                            std::size_t most) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file.IsOpen() || fstat(file.get(), &status) != 0) {
    if (errno == ENOENT) return Fail(ErrorCode::kNotFound, "the VM has no console yet");
    return Fail(ErrorCode::kUnavailable, ErrnoError(errno, path).detail);
  }
  ConsoleRange range = RangeOf(offset, most, status.st_size);
  const off_t data = lseek(file.get(), range.begin, SEEK_DATA);
  if (data > range.begin) range = RangeOf(data, most, status.st_size);

  ports::ConsoleChunk chunk;
  chunk.data.resize(static_cast<std::size_t>(range.end - range.begin));
  const ssize_t got = pread(file.get(), chunk.data.data(), chunk.data.size(), range.begin);
  if (got < 0) return Fail(ErrorCode::kUnavailable, ErrnoError(errno, path).detail);
  chunk.data.resize(static_cast<std::size_t>(got));
  chunk.next_offset = range.begin + got;
  return chunk;
}

Status TrimConsoleFile(const std::string& path, std::int64_t most) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  struct stat status{};
  if (!file.IsOpen() || fstat(file.get(), &status) != 0) {
    return errno == ENOENT ? Status() : std::unexpected(ErrnoError(errno, path));
  }
  // st_blocks are of 512 bytes, holes not among them.
  if (status.st_blocks * 512 <= most || status.st_size <= most) return {};
  // Whole blocks: the rest of a block would stay, as zeros that look like output.
  const off_t dropped = (status.st_size - most / 2) / status.st_blksize * status.st_blksize;
  if (fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, dropped) == 0) return {};
  return std::unexpected(ErrnoError(errno, path));
}

}  // namespace vmonce::hypervisor
