#include "app/serve_check.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "app/node.h"
#include "base/file.h"
#include "base/rfc3339.h"
#include "base/seal.h"
#include "ledger/inspect.h"

namespace vmonce::app {
namespace {

CheckLine Fault(std::string text) { return {.is_ok = false, .text = std::move(text)}; }

// The nearest directory upwards that exists is where the missing ones would be made.
CheckLine CheckMissingDirectory(const std::string& dir) {
  std::filesystem::path parent = std::filesystem::path(dir).parent_path();
  std::error_code failed;
  while (!parent.empty() && parent != "/" && !std::filesystem::exists(parent, failed)) {
    parent = parent.parent_path();
  }
  if (access(parent.c_str(), W_OK | X_OK) == 0) {
    return {.text = fmt::format("state directory {}: will be made", dir)};
  }
  return Fault(
      fmt::format("state directory {} does not exist and cannot be made in {}: make it, "
                  "owned by the service's user, or name another with [state] dir",
                  dir, parent.string()));
}

CheckLine CheckStateDirectory(const std::string& dir) {
  struct stat status{};
  if (stat(dir.c_str(), &status) != 0) {
    if (errno == ENOENT) return CheckMissingDirectory(dir);
    return Fault(ErrnoError(errno, "state directory " + dir).detail);
  }
  if (!S_ISDIR(status.st_mode)) {
    return Fault(fmt::format("state directory {} is no directory: move it away", dir));
  }
  if (status.st_uid != geteuid() || access(dir.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Fault(fmt::format(
        "state directory {} belongs to user {} and this is user {}: run as that user (`sudo -u "
        "'#{}' vmonce serve --check`), or, with the service stopped, `chown -R {} {}`",
        dir, status.st_uid, geteuid(), status.st_uid, geteuid(), dir));
  }
  return {.text = fmt::format("state directory {}", dir)};
}

CheckLine CheckKeyFile(const std::string& path) {
  const auto key = ReadKeyFile(path);
  if (key) return {.text = fmt::format("key file {}", path)};
  if (key.error().code == ErrorCode::kNotFound) {
    return {.text = fmt::format("key file {}: will be made", path)};
  }
  return Fault(key.error().detail);
}

CheckLine CheckLedger(const std::string& path) {
  const auto file = ledger::InspectLedger(path);
  if (!file && file.error().code == ErrorCode::kNotFound) {
    return {.text = fmt::format("ledger {}: will be made", path)};
  }
  if (!file) return Fault("ledger: " + file.error().detail);
  if (file->IsOlder()) {
    return {.text = fmt::format("ledger {}: schema {}; will be copied, then brought to {}", path,
                                file->schema, file->newest)};
  }
  return {.text = fmt::format("ledger {}: schema {}", path, file->schema)};
}

CheckLine CheckTls(const http::TlsFiles& files, Time now) {
  const auto loaded = http::TlsContext::Load(files, now);
  if (!loaded) return Fault("TLS: " + loaded.error().detail);
  return {.text = fmt::format("TLS certificate {}: valid until {}", files.certificate,
                              FormatRfc3339((*loaded)->expires()))};
}

}  // namespace

std::vector<CheckLine> CheckStart(const Config& config, Time now) {
  std::vector<CheckLine> lines = {{.text = fmt::format("configuration: {} hosts, {} images",
                                                       config.hosts.size(), config.images.size())}};
  if (const auto files = TlsFilesOf(config.server)) lines.push_back(CheckTls(*files, now));
  lines.push_back(CheckStateDirectory(config.state.dir));
  if (!lines.back().is_ok) return lines;
  lines.push_back(CheckKeyFile(config.state.KeyPath()));
  lines.push_back(CheckLedger(config.state.LedgerPath()));
  return lines;
}

}  // namespace vmonce::app
