#include "app/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "app/config_auth.h"
#include "app/config_document.h"
#include "app/config_fleet.h"
#include "app/config_reader.h"
#include "app/config_server.h"
#include "app/config_source.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

constexpr std::array<std::string_view, 11> kSections = {"server", "auth",      "state", "ledger",
                                                        "host",   "image",     "quota", "project",
                                                        "limits", "retention", "log"};
constexpr std::array<std::string_view, 4> kLogLevels = {"debug", "info", "warning", "error"};

// What every section is read with.
struct Reading {
  const ConfigNode& root;
  std::string directory;
  ConfigFindings& findings;

  ConfigTableReader Section(std::string_view name) const {
    const ConfigEntry* entry = FindEntry(root, name);
    const bool is_table =
        entry != nullptr && std::holds_alternative<ConfigTable>(entry->node.value);
    return ConfigTableReader(is_table ? &entry->node : nullptr,
                             {fmt::format("[{}]", name), std::string(name)}, directory, findings);
  }

  // The tables of a list.
  std::vector<const ConfigNode*> List(std::string_view name, std::size_t most) const {
    const ConfigEntry* entry = FindEntry(root, name);
    if (entry == nullptr) return {};
    const auto* items = std::get_if<ConfigArray>(&entry->node.value);
    std::vector<const ConfigNode*> tables;
    if (items == nullptr) return tables;
    for (const ConfigNode& item : *items) {
      if (std::holds_alternative<ConfigTable>(item.value)) tables.push_back(&item);
    }
    if (tables.size() > most) {
      findings.Add(tables[most]->at, fmt::format("more than {} of [[{}]]", most, name),
                   "remove what is not used");
      tables.resize(most);
    }
    return tables;
  }
};

// Sections that are none, or not written as one.
void CheckSections(const Reading& reading) {
  for (const ConfigEntry& entry : std::get<ConfigTable>(reading.root.value)) {
    const bool is_table = std::holds_alternative<ConfigTable>(entry.node.value);
    const auto* items = std::get_if<ConfigArray>(&entry.node.value);
    const bool is_list = items != nullptr && std::ranges::all_of(*items, [](const ConfigNode& n) {
                           return std::holds_alternative<ConfigTable>(n.value);
                         });
    const bool is_known = std::ranges::find(kSections, entry.key) != kSections.end();
    if (!is_known && !is_table && !is_list) {
      reading.findings.Add(entry.at, fmt::format("\"{}\" stands in no section", entry.key),
                           "put it below its section's line, such as [server]");
    } else if (!is_known) {
      const std::string_view nearest = Nearest(entry.key, kSections);
      reading.findings.Add(entry.at, fmt::format("unknown section \"{}\"", entry.key),
                           nearest.empty() ? fmt::format("known are {}", fmt::join(kSections, ", "))
                                           : fmt::format("did you mean \"{}\"?", nearest));
    } else if (IsConfigList(entry.key) && !is_list) {
      reading.findings.Add(entry.at, fmt::format("\"{}\" is a list of tables", entry.key),
                           fmt::format("begin each with the line [[{}]]", entry.key));
    } else if (!IsConfigList(entry.key) && !is_table) {
      reading.findings.Add(entry.at, fmt::format("\"{}\" is one table", entry.key),
                           fmt::format("begin it with the line [{}]", entry.key));
    }
  }
}

void ReadState(const Reading& reading, StateConfig& state) {
  ConfigTableReader table = reading.Section("state");
  table.Path("dir", state.dir);
  if (state.dir.size() > 1 && state.dir.ends_with('/')) state.dir.pop_back();
  if (!IsPlainPath(state.dir)) {
    table.Mistake("dir",
                  fmt::format("the path \"{}\" may be misread by libvirt or QEMU", state.dir),
                  "use letters, digits, '.', '-', '_' and '/' only");
  }
  table.Finish();
}

void ReadLedger(const Reading& reading, LedgerConfig& ledger) {
  ConfigTableReader table = reading.Section("ledger");
  std::string kind = ledger.kind;
  // Never replaced by another one: a service on a wrong ledger would forget what it promised.
  if (table.Text("kind", kind) && kind != ledger.kind) {
    table.Mistake(
        "kind",
        fmt::format("this version has no ledger of kind \"{}\", and takes no other in its "
                    "place",
                    kind),
        "write kind = \"sqlite\"");
  }
  table.Integer("cache_mib", {limits::kLedgerCacheMibMin, limits::kLedgerCacheMibMax},
                ledger.cache_mib);
  table.Finish();
}

void ReadLimits(const Reading& reading, LimitsConfig& value) {
  ConfigTableReader table = reading.Section("limits");
  table.Integer("max_backlog", {1, limits::kMaxBacklogMax}, value.max_backlog);
  table.Integer("workers", {1, limits::kWorkersMax}, value.workers);
  table.Duration("stop_grace", {Milliseconds(0), limits::kStopGraceMax}, value.stop_grace);
  table.Duration("lease_ttl", {limits::kLeaseTtlMin, limits::kLeaseTtlMax}, value.lease_ttl);
  table.Duration("reconcile_every", {limits::kReconcileEveryMin, limits::kReconcileEveryMax},
                 value.reconcile_every);
  table.Duration("orphan_grace", {Milliseconds(0), limits::kOrphanGraceMax}, value.orphan_grace);
  table.Integer("console_mib", {limits::kConsoleMibMin, limits::kConsoleMibMax}, value.console_mib);
  table.Finish();
}

void ReadRetention(const Reading& reading, model::RetentionPolicy& policy) {
  ConfigTableReader table = reading.Section("retention");
  const DurationRange days{limits::kRetentionMin, limits::kRetentionMax};
  table.Hours("retention", days, policy.retention);
  table.Hours("tombstone_retention", days, policy.tombstone_retention);
  table.Hours("key_ttl", {limits::kKeyTtlMin, limits::kRetentionMax}, policy.key_ttl);
  table.Finish();
}

void ReadLog(const Reading& reading, LogLevel& level) {
  ConfigTableReader table = reading.Section("log");
  std::string word(kLogLevels[static_cast<std::size_t>(level)]);
  table.Choice("level", kLogLevels, word);
  level = static_cast<LogLevel>(std::ranges::find(kLogLevels, word) - kLogLevels.begin());
  table.Finish();
}

Config ReadSections(const Reading& reading) {
  Config config;
  CheckSections(reading);
  ReadServerConfig(reading.Section("server"), config.server);
  ReadAuth(reading.Section("auth"), config.auth);
  ReadState(reading, config.state);
  ReadLedger(reading, config.ledger);
  const ConfigPlace place{reading.directory, config.state.EmbeddedRoot()};
  config.hosts = ReadHosts(reading.List("host", limits::kConfigHosts), place, reading.findings);
  config.images = ReadImages(reading.List("image", limits::kConfigImages), place, reading.findings);
  ReadQuota(reading.Section("quota"), config.quota);
  config.projects = ReadProjects(reading.List("project", limits::kConfigProjects),
                                 reading.directory, config.quota, reading.findings);
  ReadLimits(reading, config.limits);
  ReadRetention(reading, config.retention);
  ReadLog(reading, config.log_level);
  return config;
}

}  // namespace

std::expected<Config, std::vector<ConfigMistake>> ReadConfig(const std::optional<std::string>& path,
                                                             std::span<const std::string> overrides,
                                                             const EnvironmentReader& environment) {
  ConfigFindings findings;
  const auto root = LoadConfigSources(path, overrides, environment, findings);
  if (!root.has_value()) return std::unexpected(findings.TakeMistakes());
  std::error_code ignored;
  const std::filesystem::path file(path.value_or(std::string(kDefaultConfigPath)));
  const Reading reading{*root, std::filesystem::absolute(file, ignored).parent_path().string(),
                        findings};
  Config config = ReadSections(reading);
  if (findings.HasMistakes()) return std::unexpected(findings.TakeMistakes());
  config.explanation = findings.TakeValues();
  return config;
}

bool Config::AreTokensAlwaysRequired() const {
  return auth.tokens == "required" || server.IsExposed();
}

std::string MaskSecret(const ConfigValue& value) {
  constexpr std::string_view kMask = "***";
  for (const std::string_view word : {"secret", "password", "token"}) {
    if (value.name.ends_with(word) && !value.value.empty()) return std::string(kMask);
  }
  const std::size_t scheme = value.value.find("://");
  if (scheme == std::string::npos) return value.value;
  const std::size_t end = value.value.find_first_of("/?#", scheme + 3);
  const std::size_t at = value.value.substr(0, end).rfind('@');
  const std::size_t colon = value.value.find(':', scheme + 3);
  if (at == std::string::npos || colon == std::string::npos || colon > at) return value.value;
  return fmt::format("{}{}{}", value.value.substr(0, colon + 1), kMask, value.value.substr(at));
}

std::string ConfigMistake::Format() const {
  const std::string place = line > 0 ? fmt::format("{}:{}:{}", file, line, column) : file;
  return fmt::format("{}: {}; {}", place, text, fix);
}

}  // namespace vmonce::app
