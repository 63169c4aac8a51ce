#include "hypervisor/embedded_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "hypervisor/marker.h"
#include "hypervisor/scratch.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

// QEMU runs as we do: the root is ours alone, and files need not change hands. No security driver
// and no virtlogd, since no daemon is there; no mount namespace, which fails in containers.
constexpr std::string_view kSettings =
    "# Written by vmonce at every start.\n"
    "security_driver = \"none\"\n"
    "dynamic_ownership = 0\n"
    "remember_owner = 0\n"
    "stdio_handler = \"file\"\n"
    "namespaces = [ ]\n";
constexpr std::string_view kRootSettings = "user = \"root\"\ngroup = \"root\"\n";

constexpr std::size_t kCommandLineBytes = 64 << 10;  // QEMU's own have some 3 KiB.

Status WriteSettings(const std::string& root) {
  std::string settings(kSettings);
  if (geteuid() == 0) settings += kRootSettings;
  return WriteFileAtomically(root + "/etc/qemu.conf", settings, 0600);
}

std::string HolderOf(int lock) {
  char text[32] = {};
  const ssize_t got = pread(lock, text, sizeof(text) - 1, 0);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string("unknown");
}

Result<UniqueFd> TakeLock(const std::string& root) {
  const std::string path = root + "/vmonce.lock";
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.IsOpen()) return std::unexpected(ErrnoError(errno, path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the root {} is served by process {} already: one process has it at a "
                            "time",
                            root, HolderOf(lock.get())));
  }
  // The number is for people only; the lock is the kernel's.
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return std::unexpected(ErrnoError(errno, path));
  }
  return lock;
}

// Of a process that ended meanwhile: an empty text.
std::string CommandLine(const std::string& process) {
  const UniqueFd file(open((process + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(kCommandLineBytes, '\0');
  const ssize_t got = file.IsOpen() ? read(file.get(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// libvirt writes down that it starts a machine before it has a process. Killed then, it finds that
// note at the next open and waits for the end of that start for ever. We hold the root's lock, so a
// note about a machine without a QEMU process tells of nothing; without it the machine is defined
// and off.
void ForgetUnbornStarts(const std::string& root) {
  std::error_code failed;
  std::vector<std::filesystem::path> notes;
  for (auto entry = std::filesystem::directory_iterator(root + "/run/qemu", failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    if (entry->path().extension() == ".xml") notes.push_back(entry->path());
  }
  for (const std::filesystem::path& note : notes) {
    const Result<bool> has_process = HasQemuProcess(note.stem().string());
    if (has_process && !*has_process) unlink(note.c_str());
  }
}

}  // namespace

Result<std::unique_ptr<EmbeddedRoot>> EmbeddedRoot::Open(const std::string& root) {
  for (const char* part : {"", "/etc", "/disks", "/consoles", "/scratch"}) {
    if (auto made = MakePrivateDirectories(root + part); !made) {
      return Fail(ErrorCode::kUnavailable, made.error().detail);
    }
  }
  auto lock = TakeLock(root);
  if (!lock) return Fail(ErrorCode::kUnavailable, lock.error().detail);
  if (auto written = WriteSettings(root); !written) {
    return Fail(ErrorCode::kUnavailable, written.error().detail);
  }
  ClearScratch(root + "/scratch");
  ForgetUnbornStarts(root);
  return std::make_unique<EmbeddedRoot>(root, *std::move(lock));
}

Result<std::vector<model::HostMarker>> EmbeddedRoot::ReadMarkers() const {
  auto text = ReadWholeFile(MarkerPath(), model::limits::kMarkerBytes);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) return std::vector<model::HostMarker>();
    return Fail(ErrorCode::kUnavailable, text.error().detail);
  }
  auto marker = ParseMarker(*text);
  if (!marker) return std::unexpected(marker.error());
  return std::vector{*std::move(marker)};
}

Result<bool> EmbeddedRoot::CheckMarker(const model::HostMarker& marker,
                                       ports::MarkerPolicy policy) {
  const auto found = ReadMarkers();
  if (!found) return std::unexpected(found.error());
  auto write = JudgeMarkers(*found, marker, policy == ports::MarkerPolicy::kWriteIfNone);
  if (!write || !*write) return write;
  if (auto written = CreateFileAtomically(MarkerPath(), WriteMarker(marker), 0600); !written) {
    return Fail(ErrorCode::kUnavailable, written.error().detail);
  }
  return true;
}

Result<bool> HasQemuProcess(const std::string& domain) {
  // libvirt starts QEMU with "-name guest=DOMAIN,debug-threads=on"; each argument ends with a NUL.
  const std::string wanted = std::string(1, '\0') + "guest=" + domain + ",";
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator("/proc", failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (CommandLine(entry->path().string()).find(wanted) != std::string::npos) return true;
  }
  if (failed) return std::unexpected(ErrnoError(failed.value(), "/proc"));
  return false;
}

}  // namespace vmonce::hypervisor
