#include "app/client_settings.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "app/config_document.h"
#include "app/config_reader.h"
#include "base/file.h"
#include "client/url.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

// Each with its flag and its variable. A new setting is a row here, a line in ReadKeys(), and a
// member of ClientFlags and ClientSettings.
struct Key {
  std::string_view name;
  const char* flag;
  const char* variable;
  std::string ClientFlags::* given;
};
constexpr Key kKeys[] = {
    {"url", "--url", "VMONCE_URL", &ClientFlags::url},
    {"output", "--output", "VMONCE_OUTPUT", &ClientFlags::output},
    {"cacert", "--cacert", "VMONCE_CACERT", &ClientFlags::cacert},
    {"client_cert", "--client-cert", "VMONCE_CLIENT_CERT", &ClientFlags::client_cert},
    {"client_key", "--client-key", "VMONCE_CLIENT_KEY", &ClientFlags::client_key},
};
constexpr std::array<std::string_view, 5> kOutputs = {"table", "json", "jsonl", "yaml", "name"};

void ReadUrl(ConfigTableReader& table, ClientSettings& settings) {
  std::string url(kDefaultUrl);
  table.Text("url", url);
  auto normal = client::NormaliseBaseUrl(url);
  if (normal) {
    settings.url = std::move(*normal);
  } else {
    table.Mistake("url", normal.error().detail, fmt::format("the default is {}", kDefaultUrl));
  }
}

// What a file says starts at the file; what was typed starts where it was typed.
void ReadFileName(ConfigTableReader& table, std::string_view key, std::string& value) {
  if (!table.Text(key, value) || value.empty()) return;
  const ConfigOrigin at = table.At(key);
  if (!at.IsFile()) return;
  const auto directory = std::filesystem::path(at.source).parent_path();
  value = (directory / value).lexically_normal().string();
}

void ReadKeys(ConfigTableReader& table, ClientSettings& settings) {
  ReadUrl(table, settings);
  std::string output = "table";
  table.Choice("output", kOutputs, output);
  settings.output = ParseOutputFormat(output).value_or(OutputFormat::kTable);
  ReadFileName(table, "cacert", settings.cacert);
  ReadFileName(table, "client_cert", settings.client_cert);
  ReadFileName(table, "client_key", settings.client_key);
}

const ConfigNode* ProfilesOf(const ConfigNode& root) {
  const ConfigEntry* entry = FindEntry(root, "profile");
  const bool is_table = entry != nullptr && std::holds_alternative<ConfigTable>(entry->node.value);
  return is_table ? &entry->node : nullptr;
}

// Every table of the file, also those that are not used today.
void Check(const ConfigNode& root, const std::string& directory, ConfigFindings& findings) {
  ClientSettings unused;
  std::string name;
  ConfigTableReader top(&root, {"the file", "client"}, directory, findings);
  ReadKeys(top, unused);
  top.Text("default_profile", name);
  const ConfigEntry* entry = FindEntry(root, "profile");
  const ConfigNode* profiles = ProfilesOf(root);
  if (entry != nullptr && profiles == nullptr) {
    top.Mistake("profile", "\"profile\" is no table",
                "begin each with a line like [profile.lab], and write default_profile = \"lab\"");
  }
  top.Known("profile");
  top.Finish();
  if (profiles == nullptr) return;
  for (const ConfigEntry& profile : std::get<ConfigTable>(profiles->value)) {
    ConfigTableReader table(&profile.node, {fmt::format("[profile.{}]", profile.key), "client"},
                            directory, findings);
    if (!std::holds_alternative<ConfigTable>(profile.node.value)) {
      findings.Add(profile.at, fmt::format("\"{}\" stands in no profile", profile.key),
                   "begin each with a line like [profile.lab]");
      continue;
    }
    ReadKeys(table, unused);
    table.Finish();
  }
}

// The files that are there, the stronger one first. Their mistakes are in `findings`.
std::vector<ConfigNode> ReadFiles(const Environ& environment, ConfigFindings& findings) {
  const auto named = environment("VMONCE_CLIENT_CONFIG");
  const std::vector<std::string> paths =
      named ? std::vector{*named}
            : std::vector{PersonalClientPath(environment), std::string(kSystemClientPath)};
  std::vector<ConfigNode> files;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const auto bytes = ReadWholeFile(path, model::limits::kConfigBytes);
    if (!bytes && bytes.error().code == ErrorCode::kNotFound && !named) continue;
    if (!bytes) {
      findings.Add({path}, bytes.error().detail, "make it a readable file, or remove it");
      continue;
    }
    auto document = ParseConfigDocument(*bytes, path);
    if (!document) {
      findings.Add(document.error().at, document.error().text,
                   "mend it as TOML 1.0 (https://toml.io)");
      continue;
    }
    Check(*document, std::filesystem::path(path).parent_path().string(), findings);
    files.push_back(std::move(*document));
  }
  return files;
}

// What was said first counts.
void Take(ConfigTable& merged, const ConfigEntry& entry) {
  const bool is_said = std::ranges::any_of(
      merged, [&entry](const ConfigEntry& known) { return known.key == entry.key; });
  if (!is_said) merged.push_back(entry);
}

void TakeWord(ConfigTable& merged, std::string_view key, const std::string& word,
              const char* source) {
  if (word.empty()) return;
  Take(merged, {std::string(key), {source}, ConfigNode{{source}, ConfigWord{word}}});
}

// The profile's name, taken into `merged` as "profile" so that it is explained with the others.
std::string ChooseProfile(const ClientFlags& flags, const Environ& environment,
                          const std::vector<ConfigNode>& files, ConfigTable& merged) {
  TakeWord(merged, "profile", flags.profile, "--profile");
  TakeWord(merged, "profile", environment("VMONCE_PROFILE").value_or(""), "VMONCE_PROFILE");
  for (const ConfigNode& file : files) {
    const ConfigEntry* entry = FindEntry(file, "default_profile");
    if (entry != nullptr) Take(merged, {"profile", entry->at, entry->node});
  }
  if (merged.empty()) return "";
  const std::string* name = TextOf(merged.front().node);
  return name == nullptr ? "" : *name;
}

void TakeFiles(const std::vector<ConfigNode>& files, const std::string& profile,
               ConfigTable& merged, ConfigFindings& findings) {
  bool is_found = profile.empty();
  for (const ConfigNode& file : files) {
    const ConfigNode* profiles = ProfilesOf(file);
    const ConfigEntry* chosen = profiles == nullptr ? nullptr : FindEntry(*profiles, profile);
    const ConfigNode* const tables[] = {chosen == nullptr ? nullptr : &chosen->node, &file};
    is_found = is_found || chosen != nullptr;
    for (const ConfigNode* table : tables) {
      const auto* entries = table == nullptr ? nullptr : std::get_if<ConfigTable>(&table->value);
      if (entries == nullptr) continue;
      for (const ConfigEntry& entry : *entries) {
        const bool is_key =
            std::ranges::any_of(kKeys, [&entry](const Key& key) { return key.name == entry.key; });
        if (is_key) Take(merged, entry);
      }
    }
  }
  if (is_found) return;
  findings.Add(merged.front().node.at, fmt::format("there is no profile \"{}\"", profile),
               fmt::format("add [profile.{}] to ~/.config/vmonce/client.toml or to {}", profile,
                           kSystemClientPath));
}

}  // namespace

std::string PersonalClientPath(const Environ& environment) {
  const auto config = environment("XDG_CONFIG_HOME");
  // The XDG specification: a relative path is invalid and to be ignored.
  if (config && config->starts_with('/')) return *config + "/vmonce/client.toml";
  if (const auto home = environment("HOME")) return *home + "/.config/vmonce/client.toml";
  return "";
}

std::expected<ClientSettings, std::vector<ConfigMistake>> ReadClientSettings(
    const ClientFlags& flags, const Environ& environment) {
  ConfigFindings findings;
  const std::vector<ConfigNode> files = ReadFiles(environment, findings);
  if (findings.HasMistakes()) return std::unexpected(findings.TakeMistakes());
  (void)findings.TakeValues();  // Those of all tables; only what counts is explained below.

  ConfigTable merged;
  const std::string profile = ChooseProfile(flags, environment, files, merged);
  for (const Key& key : kKeys) {
    TakeWord(merged, key.name, flags.*key.given, key.flag);
    TakeWord(merged, key.name, environment(key.variable).value_or(""), key.variable);
  }
  TakeFiles(files, profile, merged, findings);

  const ConfigNode root{{}, std::move(merged)};
  const std::string directory;
  ConfigTableReader table(&root, {"the client's settings", "client"}, directory, findings);
  ClientSettings settings;
  table.Text("profile", settings.profile);
  ReadKeys(table, settings);
  if (findings.HasMistakes()) return std::unexpected(findings.TakeMistakes());
  settings.explanation = findings.TakeValues();
  return settings;
}

}  // namespace vmonce::app
