#include "app/config_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

// Nothing when the file cannot be used; then there is a mistake.
std::optional<ConfigNode> LoadFile(const std::optional<std::string>& path,
                                   ConfigFindings& findings) {
  const std::string name = path.value_or(std::string(kDefaultConfigPath));
  const Result<std::string> bytes = ReadWholeFile(name, limits::kConfigBytes);
  if (!bytes.has_value()) {
    const bool is_absent = bytes.error().code == ErrorCode::kNotFound;
    if (is_absent && !path.has_value()) return ConfigNode{{}, ConfigTable{}};
    findings.Add({name}, is_absent ? "there is no such file" : bytes.error().detail,
                 is_absent ? "mend the path; packaging/vmonce.toml is an example to start from"
                           : "make it a readable file of at most 1 MiB");
    return std::nullopt;
  }
  auto document = ParseConfigDocument(*bytes, name);
  if (document.has_value()) return std::move(*document);
  findings.Add(document.error().at, document.error().text, "mend it as TOML 1.0 (https://toml.io)");
  return std::nullopt;
}

void Put(ConfigNode& table, std::string_view key, std::string value, const ConfigOrigin& at) {
  ConfigNode node{at, ConfigWord{std::move(value)}};
  if (ConfigEntry* entry = FindEntry(table, key)) {
    *entry = {std::string(key), at, std::move(node)};
  } else if (auto* entries = std::get_if<ConfigTable>(&table.value)) {
    entries->push_back({std::string(key), at, std::move(node)});
  }
}

ConfigNode& FindOrAdd(ConfigNode& root, std::string_view section, const ConfigOrigin& at) {
  if (ConfigEntry* entry = FindEntry(root, section)) return entry->node;
  ConfigNode empty{at, ConfigTable{}};
  if (IsConfigList(section)) empty.value = ConfigArray{};
  auto& entries = std::get<ConfigTable>(root.value);
  entries.push_back({std::string(section), at, std::move(empty)});
  return entries.back().node;
}

// A list's only element, made when there is none. Null, with a mistake, when there are several.
ConfigNode* OnlyElement(ConfigNode& list, std::string_view section, const ConfigOrigin& at,
                        ConfigFindings& findings) {
  auto* items = std::get_if<ConfigArray>(&list.value);
  if (items == nullptr) return &list;
  if (items->empty()) {
    items->push_back({at, ConfigTable{}});
    // The name that a host has when none is given. An image has none.
    if (section == "host") Put(items->back(), "id", "local", {});
  }
  if (items->size() == 1) return &items->front();
  findings.Add(
      at,
      fmt::format("there are {} of [[{}]], and this does not say which", items->size(), section),
      "set it in the file");
  return nullptr;
}

void Override(ConfigNode& root, const std::string& assignment, const ConfigOrigin& at,
              ConfigFindings& findings) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  const std::size_t dot = name.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot == 0 ||
      dot + 1 == name.size()) {
    findings.Add(at, fmt::format("\"{}\" is not section.key=value", assignment),
                 "write, for example, limits.workers=4");
    return;
  }
  const std::string section = name.substr(0, dot);
  ConfigNode* table = &FindOrAdd(root, section, at);
  if (IsConfigList(section)) table = OnlyElement(*table, section, at, findings);
  if (table != nullptr) Put(*table, name.substr(dot + 1), assignment.substr(equals + 1), at);
}

void OverrideAll(ConfigNode& root, std::span<const std::string> overrides,
                 const EnvironmentReader& environment, ConfigFindings& findings) {
  constexpr std::array<std::pair<const char*, std::string_view>, 2> kVariables = {
      {{"VMONCE_LISTEN", "server.listen"}, {"VMONCE_STATE_DIR", "state.dir"}}};
  for (const auto& [variable, name] : kVariables) {
    const auto value = environment ? environment(variable) : std::nullopt;
    if (!value.has_value() || value->empty()) continue;
    Override(root, fmt::format("{}={}", name, *value), {variable}, findings);
  }
  for (const std::string& assignment : overrides) {
    Override(root, assignment, {"--set " + assignment}, findings);
  }
}

}  // namespace

bool IsConfigList(std::string_view section) {
  return section == "host" || section == "image" || section == "project";
}

std::optional<ConfigNode> LoadConfigSources(const std::optional<std::string>& path,
                                            std::span<const std::string> overrides,
                                            const EnvironmentReader& environment,
                                            ConfigFindings& findings) {
  std::optional<ConfigNode> root = LoadFile(path, findings);
  if (root.has_value()) OverrideAll(*root, overrides, environment, findings);
  return root;
}

}  // namespace vmonce::app
