#include "app/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temp_dir.h"

namespace vmonce::app {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::optional<std::string> NoEnvironment(const char*) { return std::nullopt; }

class ConfigTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }

  Config Read(const std::string& toml, const std::vector<std::string>& overrides = {}) {
    auto config = ReadConfig(Write(toml), overrides, NoEnvironment);
    if (config.has_value()) return *config;
    for (const ConfigMistake& mistake : config.error()) ADD_FAILURE() << mistake.Format();
    return {};
  }

  // Formatted, with the directory of the file cut off.
  std::vector<std::string> Mistakes(const std::string& toml,
                                    const std::vector<std::string>& overrides = {}) {
    const auto config = ReadConfig(Write(toml), overrides, NoEnvironment);
    std::vector<std::string> lines;
    if (config.has_value()) return lines;
    for (const ConfigMistake& mistake : config.error()) {
      std::string line = mistake.Format();
      if (line.starts_with(dir_.path())) line.erase(0, dir_.path().size() + 1);
      lines.push_back(line);
    }
    return lines;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("vmonce.toml");
};

// ---- Values ---------------------------------------------------------------------------------

TEST_F(ConfigTest, AnEmptyFileIsTheDefaults) {
  const Config config = Read("");
  EXPECT_EQ(config.server, ServerConfig{});
  EXPECT_EQ(config.state.LedgerPath(), "/var/lib/vmonce/ledger.db");
  EXPECT_EQ(config.state.KeyPath(), "/var/lib/vmonce/server.key");
  ASSERT_THAT(config.hosts, SizeIs(1));
  EXPECT_EQ(config.hosts[0].id.value, "local");
  EXPECT_EQ(config.hosts[0].uri, "qemu:///embed?root=/var/lib/vmonce/libvirt");
  EXPECT_THAT(config.images, IsEmpty());
  EXPECT_EQ(config.limits, LimitsConfig{});
  EXPECT_EQ(config.retention, model::RetentionPolicy{});
  EXPECT_EQ(config.log_level, LogLevel::kInfo);
}

TEST_F(ConfigTest, ReadsEverySection) {
  std::ofstream(dir_.File("disk.qcow2")) << "x";
  std::ofstream(dir_.File("vmlinuz")) << "x";
  std::ofstream(dir_.File("initrd")) << "x";
  const Config config = Read(R"(
[server]
listen = "[::1]:0"
allowed_hosts = ["VMonce.example"]
[state]
dir = "state"
[ledger]
kind = "sqlite"
cache_mib = 8
[[host]]
id = "a"
[[host]]
id = "b"
uri = "qemu+ssh://rack/system"
accel = "tcg"
cpus = 8
memory_mib = 4096
disk_gib = 100
vms = 5
pool = "p"
pool_path = "/srv/p"
forward_ports = "2000-2999"
forward_address = "0.0.0.0"
networks = ["default", "bridge:br0"]
[[host]]
id = "c"
uri = "simulated:"
latency_ms = 5
[[image]]
name = "debian"
kind = "disk"
disk = "disk.qcow2"
disk_format = "qcow2"
aliases = ["debian:12", "stable"]
[[image]]
name = "tiny"
kind = "kernel"
kernel = "vmlinuz"
initrd = "./initrd"
cmdline = "console=ttyS0"
[quota]
vms = 1
cpus = 2
memory_mib = 3
disk_gib = 4
[limits]
max_backlog = 10
workers = 2
stop_grace = "0s"
lease_ttl = "1500ms"
reconcile_every = "100ms"
orphan_grace = "1h"
console_mib = 2
[retention]
retention = "24h"
tombstone_retention = "60d"
key_ttl = "2h"
[log]
level = "debug"
)");
  EXPECT_EQ(config.server.address, "::1");
  EXPECT_EQ(config.server.port, 0);
  EXPECT_THAT(config.server.allowed_hosts, ElementsAre("vmonce.example"));
  EXPECT_EQ(config.state.dir, dir_.File("state"));
  EXPECT_EQ(config.ledger.cache_mib, 8);
  EXPECT_EQ(config.limits.console_mib, 2);
  ASSERT_THAT(config.hosts, SizeIs(3));
  EXPECT_EQ(config.hosts[0].uri, "qemu:///embed?root=" + dir_.File("state/libvirt"));
  EXPECT_EQ(config.hosts[0].cpus, std::nullopt);
  const HostConfig rack{.id = {"b"},
                        .uri = "qemu+ssh://rack/system",
                        .accel = "tcg",
                        .cpus = 8,
                        .memory_mib = 4096,
                        .disk_gib = 100,
                        .vms = 5,
                        .pool = "p",
                        .pool_path = "/srv/p",
                        .forward_ports = {2000, 2999},
                        .forward_address = "0.0.0.0",
                        .networks = {"default", "bridge:br0"}};
  EXPECT_EQ(config.hosts[1], rack);
  EXPECT_EQ(config.hosts[2].latency, Milliseconds(5));
  const model::Image debian{.name = "debian",
                            .kind = model::ImageKind::kDisk,
                            .disk_path = dir_.File("disk.qcow2"),
                            .disk_format = "qcow2",
                            .aliases = {"debian:12", "stable"}};
  const model::Image tiny{.name = "tiny",
                          .kind = model::ImageKind::kKernel,
                          .kernel_path = dir_.File("vmlinuz"),
                          .initrd_path = dir_.File("initrd"),
                          .cmdline = "console=ttyS0"};
  EXPECT_THAT(config.images, ElementsAre(debian, tiny));
  EXPECT_EQ(config.quota.amounts, (model::Resources{1, 2, 3, 4}));
  const LimitsConfig limits{10, 2, seconds(0), Milliseconds(1500), Milliseconds(100), hours(1), 2};
  EXPECT_EQ(config.limits, limits);
  EXPECT_EQ(config.limits.LeaseRenewEvery(), Milliseconds(500));
  EXPECT_EQ(config.retention.retention, hours(24));
  EXPECT_EQ(config.retention.tombstone_retention, hours(1440));
  EXPECT_EQ(config.retention.key_ttl, hours(2));
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
}

TEST_F(ConfigTest, ATrailingSlashOfTheStateDirectoryIsNothing) {
  EXPECT_EQ(Read("[state]\ndir = \"/srv/a/\"").state.LedgerPath(), "/srv/a/ledger.db");
}

TEST_F(ConfigTest, EveryLoopbackAddressMayBeListenedOn) {
  const std::vector<std::pair<std::string, std::string>> kGood = {
      {"localhost:1", "127.0.0.1"}, {"127.3.2.1:1", "127.3.2.1"}, {"[::1]:1", "::1"}};
  for (const auto& [listen, address] : kGood) {
    EXPECT_EQ(Read("[server]\nlisten = \"" + listen + "\"").server.address, address);
  }
}

// ---- Overrides ------------------------------------------------------------------------------

TEST_F(ConfigTest, TheCommandLineBeatsTheEnvironmentBeatsTheFile) {
  const std::string path = Write(
      "[server]\nlisten = \"127.0.0.1:1\"\n[state]\ndir = \"/file\"\n[limits]\nworkers = 1\n");
  const EnvironmentReader environment = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "VMONCE_LISTEN") return "127.0.0.1:2";
    if (std::string_view(name) == "VMONCE_STATE_DIR") return "/environment";
    return std::nullopt;
  };
  const std::vector<std::string> overrides = {"state.dir=/line", "limits.workers=2",
                                              "limits.workers=3"};
  const auto config = ReadConfig(path, overrides, environment);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->server.port, 2);
  EXPECT_EQ(config->state.dir, "/line");
  EXPECT_EQ(config->limits.workers, 3);
  EXPECT_THAT(config->explanation,
              Contains(ConfigValue{"server.listen", "127.0.0.1:2", "VMONCE_LISTEN"}));
  EXPECT_THAT(config->explanation,
              Contains(ConfigValue{"state.dir", "/line", "--set state.dir=/line"}));
  EXPECT_THAT(config->explanation,
              Contains(ConfigValue{"limits.workers", "3", "--set limits.workers=3"}));
  EXPECT_THAT(config->explanation, Contains(ConfigValue{"log.level", "info", "default"}));
}

TEST_F(ConfigTest, AnEmptyVariableIsUnset) {
  const auto config = ReadConfig(Write(""), {}, [](const char*) { return std::string(); });
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->server.port, 8080);
}

TEST_F(ConfigTest, OverridesNeedNoQuotesAndSplitListsAtCommas) {
  const Config config = Read("", {"server.allowed_hosts=a.example,b.example", "log.level=error",
                                  "limits.stop_grace=2s", "server.listen=127.0.0.1:9"});
  EXPECT_THAT(config.server.allowed_hosts, ElementsAre("a.example", "b.example"));
  EXPECT_EQ(config.log_level, LogLevel::kError);
  EXPECT_EQ(config.limits.stop_grace, seconds(2));
  EXPECT_EQ(config.server.port, 9);
}

TEST_F(ConfigTest, APathOfAnOverrideStartsAtTheCurrentDirectory) {
  EXPECT_EQ(Read("", {"state.dir=x"}).state.dir, (std::filesystem::current_path() / "x").string());
}

TEST_F(ConfigTest, AnOverrideOfTheOnlyHostMayMakeIt) {
  const Config made = Read("", {"host.accel=tcg"});
  ASSERT_THAT(made.hosts, SizeIs(1));
  EXPECT_EQ(made.hosts[0].id.value, "local");
  EXPECT_EQ(made.hosts[0].accel, "tcg");
  EXPECT_EQ(Read("[[host]]\nid = \"a\"\n", {"host.uri=simulated:"}).hosts[0].uri, "simulated:");
  EXPECT_THAT(Mistakes("[[host]]\nid = \"a\"\n[[host]]\nid = \"b\"\nuri = \"simulated:\"\n",
                       {"host.accel=tcg"}),
              ElementsAre("--set host.accel=tcg: there are 2 of [[host]], and this does not say "
                          "which; set it in the file"));
}

TEST_F(ConfigTest, AnOverrideThatIsNoneIsAMistake) {
  for (const char* text : {"", "workers", "workers=3", ".workers=3", "limits.=3"}) {
    EXPECT_THAT(Mistakes("", {text}), ElementsAre(HasSubstr("is not section.key=value"))) << text;
  }
  EXPECT_THAT(Mistakes("", {"limits.worker=3"}),
              ElementsAre("--set limits.worker=3: unknown key \"worker\" in [limits]; did you mean "
                          "\"workers\"?"));
  EXPECT_THAT(Mistakes("", {"limits.workers=three"}),
              ElementsAre("--set limits.workers=three: \"workers\" in [limits] must be an integer, "
                          "not \"three\"; write workers = 8"));
}

TEST_F(ConfigTest, SaysWhereEachValueComesFrom) {
  const Config config = Read("\n[limits]\nworkers = 3\n[[host]]\nid = \"a\"\nvms = 7\n");
  EXPECT_THAT(config.explanation, Contains(ConfigValue{"limits.workers", "3", path_ + ":3"}));
  EXPECT_THAT(config.explanation, Contains(ConfigValue{"host.a.vms", "7", path_ + ":6"}));
  EXPECT_THAT(config.explanation, Contains(ConfigValue{"host.a.cpus", "measured", "default"}));
}

// ---- Files ----------------------------------------------------------------------------------

TEST_F(ConfigTest, AFileThatWasNamedMustBeThere) {
  const auto config = ReadConfig(dir_.File("absent.toml"), {}, NoEnvironment);
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error()[0].Format(),
            dir_.File("absent.toml") +
                ": there is no such file; mend the path; packaging/vmonce.toml is an example to "
                "start from");
}

TEST_F(ConfigTest, WithoutANamedFileAnAbsentOneIsTheDefaults) {
  const std::vector<std::string> overrides = {"limits.workers=3"};
  const auto config = ReadConfig(std::nullopt, overrides, NoEnvironment);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->limits.workers, 3);
  EXPECT_THAT(config->hosts, Not(IsEmpty()));
}

TEST_F(ConfigTest, ADirectoryIsNoConfiguration) {
  const auto config = ReadConfig(dir_.path(), {}, NoEnvironment);
  ASSERT_FALSE(config.has_value());
  EXPECT_THAT(config.error(), SizeIs(1));
}

TEST_F(ConfigTest, ASyntaxErrorHasItsPlace) {
  EXPECT_THAT(Mistakes("[server]\nlisten = \n"), ElementsAre(HasSubstr("vmonce.toml:2:")));
  EXPECT_THAT(Mistakes("[log]\nlevel = \"info\"\nlevel = \"info\"\n"),
              ElementsAre(HasSubstr("vmonce.toml:3:")));
}

TEST_F(ConfigTest, AProjectsQuotaIsTheGeneralOneWhereItSaysNothing) {
  const Config config = Read("[quota]\nvms = 7\nkeys = 9\n[[project]]\nname = \"web\"\nvms = 3\n");
  ASSERT_EQ(config.projects.size(), 1u);
  EXPECT_EQ(config.projects[0].name.value, "web");
  EXPECT_EQ(config.projects[0].quota.amounts.vms, 3);
  EXPECT_EQ(config.projects[0].quota.amounts.cpus, config.quota.amounts.cpus);
  EXPECT_EQ(config.projects[0].quota.keys, 9);
}

TEST_F(ConfigTest, TokensAreAlwaysRequiredWhereItSaysSo) {
  EXPECT_FALSE(Read("").AreTokensAlwaysRequired());
  EXPECT_TRUE(Read("[auth]\ntokens = \"required\"").AreTokensAlwaysRequired());
  Config beyond = Read("");
  beyond.server.address = "192.0.2.1";
  EXPECT_TRUE(beyond.AreTokensAlwaysRequired());
  // Everybody comes from the proxy's address then.
  EXPECT_TRUE(Read("[server]\nbehind_tls_proxy = true").AreTokensAlwaysRequired());
}

TEST_F(ConfigTest, ListensBeyondLoopbackWhereTheWayIsProtected) {
  const Config tls =
      Read("[server]\nlisten = \"0.0.0.0:8443\"\ntls_cert = \"c.pem\"\ntls_key = \"k.pem\"");
  EXPECT_EQ(tls.server.address, "0.0.0.0");
  EXPECT_TRUE(tls.server.HasTls());
  EXPECT_TRUE(tls.server.IsExposed());
  const Config proxy = Read("[server]\nlisten = \"[::]:80\"\nbehind_tls_proxy = true");
  EXPECT_EQ(proxy.server.address, "::");
  for (const char* address : {"127.0.0.1", "127.255.0.1", "::1"}) {
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
  }
  for (const char* address : {"128.0.0.1", "::", "::ffff:127.0.0.1", "localhost", "127.1", ""}) {
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
  }
}

}  // namespace
}  // namespace vmonce::app
