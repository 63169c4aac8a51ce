#include "ledger/lock_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace vmonce::ledger {
namespace {

std::string Cause() { return std::generic_category().message(errno); }

// For the text of the refusal only: the file's content proves nothing.
std::string HolderNamedIn(const UniqueFd& file) {
  std::array<char, 32> text{};
  const ssize_t got = pread(file.get(), text.data(), text.size() - 1, 0);
  std::string holder(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  return holder.empty() ? std::string("another process") : "process " + holder;
}

}  // namespace

Result<UniqueFd> TakeLockFile(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.IsOpen()) {
    return Fail(ErrorCode::kUnavailable, fmt::format("cannot open {}: {}", path, Cause()));
  }
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Fail(ErrorCode::kConflict,
                  fmt::format("this ledger is already served by {} ({} is locked); stop that one "
                              "first, or give this one another ledger file",
                              HolderNamedIn(file), path));
    }
    return Fail(ErrorCode::kUnavailable, fmt::format("cannot lock {}: {}", path, Cause()));
  }
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Fail(ErrorCode::kUnavailable, fmt::format("cannot write {}: {}", path, Cause()));
  }
  return file;
}

}  // namespace vmonce::ledger
