#include "hypervisor/host_uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::string_view kSimulatedScheme = "simulated:";
constexpr std::array<std::string_view, 6> kTransports{"unix", "ssh",     "libssh",
                                                      "tls",  "libssh2", "tcp"};

struct Parts {
  std::string_view transport;  // After the plus of the scheme; empty without one.
  std::string_view authority;
  std::string_view path;
  std::string_view query;
};

Parts Split(std::string_view scheme, std::string_view rest) {
  Parts parts;
  if (const auto plus = scheme.find('+'); plus != std::string_view::npos) {
    parts.transport = scheme.substr(plus + 1);
  }
  const auto question = rest.find('?');
  if (question != std::string_view::npos) parts.query = rest.substr(question + 1);
  rest = rest.substr(0, question);
  const auto slash = rest.find('/');
  parts.authority = rest.substr(0, slash);
  parts.path = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  return parts;
}

// libvirt and the shell would each read the rest differently.
bool IsPlainPath(std::string_view path) {
  return path.starts_with('/') &&
         std::ranges::all_of(path,
                             [](char c) {
                               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                      (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '-' ||
                                      c == '_';
                             }) &&
         path.find("/..") == std::string_view::npos;
}

Result<HostUri> ParseEmbedded(const Parts& parts) {
  constexpr std::string_view kRoot = "root=";
  std::string_view root = parts.query;
  if (!root.starts_with(kRoot) || !parts.authority.empty() || !parts.transport.empty()) {
    return Fail(ErrorCode::kInvalid, "an embedded host is qemu:///embed?root=/a/directory");
  }
  root.remove_prefix(kRoot.size());
  while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
  if (!IsPlainPath(root) || root.size() < 2) {
    return Fail(ErrorCode::kInvalid,
                "the root of an embedded host is an absolute path of letters, digits, '.', '-', "
                "'_' and '/'");
  }
  if (root.size() > model::limits::kEmbedRootBytes) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("the root {} has {} bytes; sockets beneath it allow {}: choose a "
                            "shorter path",
                            root, root.size(), model::limits::kEmbedRootBytes));
  }
  return HostUri{.kind = HostKind::kEmbedded,
                 .uri = fmt::format("qemu:///embed?root={}", root),
                 .directory = std::string(root)};
}

Result<HostUri> ParseQemu(std::string_view uri, const Parts& parts) {
  if (parts.path == "/embed") return ParseEmbedded(parts);
  if (parts.path != "/system" && parts.path != "/session") {
    return Fail(ErrorCode::kInvalid, "a qemu host's path is /embed, /system or /session");
  }
  const bool is_local = parts.authority.empty();
  if (!parts.transport.empty() &&
      std::ranges::find(kTransports, parts.transport) == kTransports.end()) {
    return Fail(ErrorCode::kInvalid, fmt::format("unknown transport in {}", uri));
  }
  if (is_local && !parts.transport.empty() && parts.transport != "unix") {
    return Fail(ErrorCode::kInvalid, fmt::format("{} names no machine", uri));
  }
  HostUri result{.kind = is_local ? HostKind::kLocalDaemon : HostKind::kRemoteDaemon,
                 .uri = std::string(uri)};
  // ssh would ask for a password on our terminal, and wait.
  if (parts.transport == "ssh") result.uri += parts.query.empty() ? "?no_tty=1" : "&no_tty=1";
  return result;
}

}  // namespace

Result<HostUri> ParseHostUri(std::string_view uri) {
  if (uri.starts_with(kSimulatedScheme)) {
    const std::string_view directory = uri.substr(kSimulatedScheme.size());
    if (directory.empty() || IsPlainPath(directory)) {
      return HostUri{.kind = HostKind::kSimulated, .directory = std::string(directory)};
    }
    return Fail(ErrorCode::kInvalid, "a simulated host is simulated: or simulated:/a/directory");
  }
  const auto colon = uri.find("://");
  const std::string_view scheme = uri.substr(0, colon);
  if (colon != std::string_view::npos && scheme == "test") {
    return HostUri{.kind = HostKind::kTest, .uri = std::string(uri)};
  }
  if (colon != std::string_view::npos && (scheme == "qemu" || scheme.starts_with("qemu+"))) {
    return ParseQemu(uri, Split(scheme, uri.substr(colon + 3)));
  }
  return Fail(ErrorCode::kInvalid,
              fmt::format("\"{}\" is no host: use qemu:///embed?root=DIR, qemu:///system, "
                          "qemu+ssh://HOST/system, qemu+tls://HOST/system, test:///default or "
                          "simulated:",
                          uri));
}

Milliseconds DefaultSettleTime(HostKind kind) {
  switch (kind) {
    case HostKind::kSimulated:
    case HostKind::kTest:
    case HostKind::kEmbedded: return model::limits::kSettleEmbedded;
    case HostKind::kLocalDaemon: return model::limits::kSettleLocalDaemon;
    case HostKind::kRemoteDaemon: return model::limits::kSettleRemote;
  }
  return model::limits::kSettleRemote;
}

}  // namespace vmonce::hypervisor
