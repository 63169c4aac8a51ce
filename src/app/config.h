// The service's configuration: defaults, then one TOML file, then the environment, then the command
// line. Every mistake is told with its place and its repair; a wrong configuration is never half
// used. docs/configuration.md tells every key.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "model/auth_limits.h"
#include "model/console_limits.h"
#include "model/forward.h"
#include "model/forward_limits.h"
#include "model/host.h"
#include "model/image.h"
#include "model/limits.h"
#include "model/retention.h"

namespace vmonce::app {

inline constexpr std::string_view kDefaultConfigPath = "/etc/vmonce/vmonce.toml";

// 127.0.0.0/8 and ::1, as addresses; names other than "localhost" could resolve to anything.
bool IsLoopbackAddress(std::string_view address);

struct ServerConfig {
  std::string address = "127.0.0.1";       // An IP address; IPv6 without brackets.
  std::uint16_t port = 8080;               // 0: a free one.
  std::vector<std::string> allowed_hosts;  // Beside the loopback names; lower case, no port.
  std::string tls_cert;                    // Absolute; "" with tls_key: everything in clear.
  std::string tls_key;
  std::string client_ca;  // Absolute; "": clients are asked for no certificate.
  bool is_client_cert_required = true;
  bool behind_tls_proxy = false;

  bool HasTls() const { return !tls_cert.empty(); }
  // Whether others than this machine's own users may reach it: then every caller must prove who it
  // is.
  bool IsExposed() const { return !IsLoopbackAddress(address) || behind_tls_proxy; }
  bool operator==(const ServerConfig&) const = default;
};

struct AuthConfig {
  // "auto": beyond the loopback address, and once a token was made. "required": always.
  std::string tokens = "auto";
  std::int64_t rate = model::limits::kTokenRate;  // Of each token, a second; zero: no limit.
  std::int64_t burst = model::limits::kTokenBurst;

  bool operator==(const AuthConfig&) const = default;
};

struct StateConfig {
  std::string dir = "/var/lib/vmonce";  // Absolute. It may not exist yet.

  std::string LedgerPath() const { return dir + "/ledger.db"; }
  std::string KeyPath() const { return dir + "/server.key"; }
  std::string ImagesPath() const { return dir + "/images"; }
  std::string EmbeddedRoot() const { return dir + "/libvirt"; }
  bool operator==(const StateConfig&) const = default;
};

struct LedgerConfig {
  std::string kind = "sqlite";  // The only one.
  int cache_mib = model::limits::kLedgerCacheMib;

  bool operator==(const LedgerConfig&) const = default;
};

// Capacities replace what is measured on the host, and are what may be reserved there in sum.
struct HostConfig {
  model::HostId id{"local"};
  std::string uri;             // One of the forms of hypervisor/factory.h; no two hosts share one.
  std::string accel = "auto";  // "auto", "kvm" or "tcg".
  std::optional<std::int64_t> cpus;
  std::optional<std::int64_t> memory_mib;
  std::optional<std::int64_t> disk_gib;
  std::int64_t vms = model::limits::kVmsPerHost;
  std::string pool = "vmonce";  // Daemons only.
  std::string pool_path;        // Daemons only, absolute on the daemon's machine; may be empty.
  Milliseconds latency{0};      // Simulated hosts only.
  model::PortRange forward_ports{model::limits::kForwardPortsFirst,
                                 model::limits::kForwardPortsLast};
  std::string forward_address = "127.0.0.1";  // IPv4, where forwarded ports listen.
  std::vector<std::string> networks;          // That VMs may be in, beside user-mode networking.

  bool operator==(const HostConfig&) const = default;
};

struct QuotaConfig {
  model::Resources amounts{model::limits::kQuotaVms, model::limits::kQuotaCpus,
                           model::limits::kQuotaMemoryMib, model::limits::kQuotaDiskGib};
  std::int64_t keys = model::limits::kQuotaKeys;

  bool operator==(const QuotaConfig&) const = default;
};

struct ProjectConfig {
  model::ProjectId name;
  QuotaConfig quota;

  bool operator==(const ProjectConfig&) const = default;
};

struct LimitsConfig {
  std::int64_t max_backlog = model::limits::kMaxBacklog;
  int workers = model::limits::kWorkers;
  Milliseconds stop_grace = model::limits::kStopGrace;
  Milliseconds lease_ttl = model::limits::kLeaseTtl;
  Milliseconds reconcile_every = model::limits::kReconcileEvery;
  Milliseconds orphan_grace = model::limits::kOrphanGrace;
  int console_mib = model::limits::kConsoleMib;  // Kept of a guest's; embedded hosts.

  // A third: two renewals may be lost.
  Milliseconds LeaseRenewEvery() const { return lease_ttl / 3; }
  bool operator==(const LimitsConfig&) const = default;
};

// For people: `name` is "section.key" ("host.ID.key", "image.NAME.key" for lists), `origin` is
// "default", "FILE:LINE", "VMONCE_..." or "--set ...".
struct ConfigValue {
  std::string name;
  std::string value;
  std::string origin;

  bool operator==(const ConfigValue&) const = default;
};

// What may be shown of it: a password in a URI, and whatever a key's name calls a secret, is "***".
std::string MaskSecret(const ConfigValue& value);

struct Config {
  ServerConfig server;
  AuthConfig auth;
  StateConfig state;
  LedgerConfig ledger;
  std::vector<HostConfig> hosts;     // At least one, in the file's order.
  std::vector<model::Image> images;  // Paths are absolute, their files were there when it was read.
  QuotaConfig quota;                 // Of every project that is not named below.
  std::vector<ProjectConfig> projects;  // In the file's order, no name twice.
  LimitsConfig limits;
  model::RetentionPolicy retention;
  LogLevel log_level = LogLevel::kInfo;

  std::vector<ConfigValue> explanation;  // Every value above and who said so.

  // Whether nobody is served without a token, whatever the ledger holds.
  bool AreTokensAlwaysRequired() const;
};

struct ConfigMistake {
  std::string file;  // Or what was said instead: "--set limits.workers=x", "VMONCE_LISTEN".
  int line = 0;      // From 1; 0 when there is none.
  int column = 0;
  std::string text;  // What is wrong.
  std::string fix;   // What to do about it.

  // "vmonce.toml:12:3: unknown key "memory_mb" in [[host]]; did you mean "memory_mib"?"
  std::string Format() const;
  bool operator==(const ConfigMistake&) const = default;
};

// The value of a variable; unset and empty are nothing.
using EnvironmentReader = std::function<std::optional<std::string>(const char* name)>;

// Reads the file at `path`; without a path, the one at kDefaultConfigPath, whose absence means
// defaults. Then VMONCE_LISTEN and VMONCE_STATE_DIR count, then `overrides`, each
// "section.key=value", the last one of a key. "host.key" and "image.key" speak of the only host or
// image, and make it when there is none. Relative paths start at the file's directory; in overrides
// and in the environment, at the current one. Whether image files exist is looked up; nothing is
// written. On failure there are 1 to limits::kConfigMistakes mistakes, in the order of the file.
std::expected<Config, std::vector<ConfigMistake>> ReadConfig(const std::optional<std::string>& path,
                                                             std::span<const std::string> overrides,
                                                             const EnvironmentReader& environment);

}  // namespace vmonce::app
