// packaging/vmonce.toml and docs/configuration.md, held to what the service really reads.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "app/config.h"
#include "base/temp_dir.h"

namespace vmonce::app {
namespace {

std::string ReadSource(const std::string& path) {
  const auto root = std::filesystem::path(__FILE__).parent_path() / "../..";
  std::ifstream file(root / path);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Config Read(const TempDir& dir, const std::string& toml) {
  const std::string path = dir.File("vmonce.toml");
  std::ofstream(path) << toml;
  const auto config = ReadConfig(path, {}, nullptr);
  if (config.has_value()) return *config;
  for (const ConfigMistake& mistake : config.error()) ADD_FAILURE() << mistake.Format();
  return {};
}

// The example with every setting in force, its images' files at hand.
Config ReadUncommented(const TempDir& dir) {
  std::string toml = std::regex_replace(ReadSource("packaging/vmonce.toml"),
                                        std::regex("(^|\n)#(?=[a-z\\[])"), "$1");
  toml = std::regex_replace(toml, std::regex("/srv/images"), dir.path());
  for (const char* file : {"debian-12.qcow2", "vmlinuz", "initrd.gz"}) {
    std::ofstream(dir.File(file)) << "x";
  }
  return Read(dir, toml);
}

// "host.local.accel" is the key "host.accel".
std::string KeyOf(const std::string& name) {
  return name.substr(0, name.find('.')) + name.substr(name.rfind('.'));
}

std::set<std::string> KeysOf(const Config& config, bool only_given) {
  std::set<std::string> keys;
  for (const ConfigValue& value : config.explanation) {
    if (!only_given || value.origin != "default") keys.insert(KeyOf(value.name));
  }
  return keys;
}

void ExpectDefaults(const Config& config) {
  const TempDir dir;
  const Config defaults = Read(dir, "");
  EXPECT_EQ(config.server, defaults.server);
  EXPECT_EQ(config.auth, defaults.auth);
  EXPECT_EQ(config.state, defaults.state);
  EXPECT_EQ(config.ledger, defaults.ledger);
  EXPECT_EQ(config.quota, defaults.quota);
  EXPECT_EQ(config.limits, defaults.limits);
  EXPECT_EQ(config.retention, defaults.retention);
  EXPECT_EQ(config.log_level, defaults.log_level);
}

TEST(ConfigExample, AsItIsChangesNothing) {
  const TempDir dir;
  const Config config = Read(dir, ReadSource("packaging/vmonce.toml"));
  ExpectDefaults(config);
  EXPECT_EQ(config.hosts, Read(dir, "").hosts);
  EXPECT_TRUE(config.images.empty());
  EXPECT_TRUE(config.projects.empty());
  EXPECT_TRUE(KeysOf(config, /*only_given=*/true).empty());
}

TEST(ConfigExample, UncommentedItSaysTheDefaultsAndEveryKey) {
  const TempDir dir;
  const Config config = ReadUncommented(dir);
  ExpectDefaults(config);
  ASSERT_EQ(config.hosts.size(), 3u);
  HostConfig first = config.hosts[0];
  first.cpus = first.memory_mib = first.disk_gib = std::nullopt;
  EXPECT_EQ(first, Read(dir, "").hosts[0]);
  EXPECT_EQ(config.images.size(), 2u);
  ASSERT_EQ(config.projects.size(), 1u);
  EXPECT_EQ(config.projects[0].quota, config.quota);
  EXPECT_EQ(KeysOf(config, /*only_given=*/true), KeysOf(config, /*only_given=*/false));
}

TEST(ConfigDocument, HasARowForEveryKeyAndForNoOther) {
  const TempDir dir;
  const std::string page = ReadSource("docs/configuration.md");
  std::set<std::string> documented;
  const std::regex row("\n\\| `([a-z_]+\\.[a-z_]+)` \\|");
  for (std::sregex_iterator it(page.begin(), page.end(), row); it != std::sregex_iterator(); ++it) {
    documented.insert((*it)[1]);
  }
  EXPECT_EQ(documented, KeysOf(ReadUncommented(dir), /*only_given=*/false));
}

TEST(ConfigDocument, TellsTheDefaults) {
  const TempDir dir;
  const std::string page = ReadSource("docs/configuration.md");
  for (const ConfigValue& value : Read(dir, "").explanation) {
    const std::string key = KeyOf(value.name);
    std::string shown = fmt::format("`{}`", value.value);
    if (key == "host.id") shown = "required";
    if (value.value.empty()) shown = "none";
    if (value.value == "measured") shown = "measured";
    EXPECT_THAT(page, testing::HasSubstr(fmt::format("\n| `{}` | {} |", key, shown)));
  }
}

}  // namespace
}  // namespace vmonce::app
