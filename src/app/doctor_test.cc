#include "app/doctor.h"

#include <sys/stat.h>

#include <cerrno>

#include "app/fake_world.h"
#include "base/json.h"

namespace vmonce::app {
namespace {

using client::FakeTransport;

HostFacts Embedded() {
  HostFacts host;
  host.id = "local";
  host.uri = "qemu:///embed?root=/var/lib/vmonce/libvirt";
  host.needs = HostNeeds::kEmbedded;
  host.accel = "auto";
  host.root = "/var/lib/vmonce/libvirt";
  return host;
}

HostFacts Daemon() {
  HostFacts host;
  host.id = "daemon";
  host.uri = "qemu:///system";
  host.needs = HostNeeds::kDaemon;
  host.accel = "auto";
  host.socket = "/run/libvirt/libvirt-sock";
  host.network = NetworkFacts{NetworkFacts::State::kActive, "default", "virbr0", ""};
  return host;
}

constexpr const char* kOpenFirewall = R"({"nftables":[{"chain":{"family":"inet","table":"filter",)"
                                      R"("name":"input","hook":"input","policy":"accept"}}]})";
constexpr const char* kClosedFirewall = R"({"nftables":[{"chain":{"family":"inet",)"
                                        R"("table":"filter","name":"input","hook":"input",)"
                                        R"("policy":"drop"}}]})";

// A computer on which all is well.
DoctorFacts Well() {
  DoctorFacts facts;
  facts.config_path = "/etc/vmonce/vmonce.toml";
  facts.listen = "127.0.0.1:8080";
  facts.state_dir = "/var/lib/vmonce";
  facts.images = {model::Image{.name = "tiny"}};
  facts.server.url = "http://127.0.0.1:8080";
  facts.server.is_local = true;
  facts.server.has_answered = true;
  facts.server.status = 200;
  facts.server.images = 1;
  facts.server.hosts = {{"local", true, ""}};
  facts.user = {"ann", 1000, {"ann", "kvm", "libvirt"}, {"ann", "kvm", "libvirt"}};
  facts.hosts = {Embedded(), Daemon()};
  facts.kvm = {true, true, 0, "kvm", true, ""};
  facts.has_libvirt_driver = true;
  facts.libvirt_driver_path = "/usr/lib/libvirt_driver_qemu.so";
  facts.qemu_user = QemuUser{64055, {64055, 107}};
  facts.firewall = kOpenFirewall;
  facts.paths = {
      {"/pool", {{"/", 0, 0, S_IFDIR | 0755, false}, {"/pool", 0, 0, S_IFDIR | 0711, false}}}};
  facts.state = {true, true, "ann"};
  facts.has_apparmor = true;
  facts.has_apparmor_helper = true;
  facts.disk_path = "/var/lib/vmonce";
  facts.disk_free_mib = 100'000;
  facts.memory_free_mib = 8'000;
  facts.public_keys = {"~/.ssh/id_ed25519.pub"};
  facts.is_clock_synchronised = true;
  facts.year = 2026;
  return facts;
}

TEST(Doctor, FindsNothingWhereAllIsWell) {
  DoctorFacts facts = Well();
  facts.user.id = 0;  // So that the embedded driver's user counts too.
  std::set<std::string> names;
  for (const Finding& finding : Diagnose(facts)) {
    EXPECT_EQ(finding.result, FindingResult::kOk) << finding.name << ": " << finding.what;
    EXPECT_EQ(finding.why + finding.repair, "") << finding.name;
    EXPECT_NE(finding.what, "");
    names.insert(finding.name);
  }
  const std::set<std::string> all = {"config",  "server",   "host",      "session",   "kvm",
                                     "qemu",    "libvirt",  "network",   "qemu_user", "root_path",
                                     "folders", "apparmor", "dhcp",      "disk",      "memory",
                                     "image",   "clock",    "public_key"};
  EXPECT_EQ(names, all);
}

struct Ill {
  const char* name;
  FindingResult result;
  std::function<void(DoctorFacts&)> spoil;
  const char* why;
  const char* repair;
};

std::vector<Ill> ServiceIlls() {
  constexpr auto kWarn = FindingResult::kWarn;
  constexpr auto kFail = FindingResult::kFail;
  return {
      {"config", kFail,
       [](DoctorFacts& f) {
         f.config_mistakes = {{"vmonce.toml", 3, 1, "unknown key", "remove it"}};
       },
       "vmonce.toml:3:1: unknown key; remove it",
       "vmonce config check --config /etc/vmonce/vmonce.toml"},
      {"config", kWarn, [](DoctorFacts& f) { f.is_config_denied = true; }, "not known",
       "sudo vmonce doctor"},
      {"server", kWarn,
       [](DoctorFacts& f) {
         f.server = {.url = "http://127.0.0.1:8080", .is_local = true, .error = "refused"};
       },
       "refused", "vmonce serve --config /etc/vmonce/vmonce.toml"},
      {"server", kWarn,
       [](DoctorFacts& f) {
         f.server = {.url = "http://127.0.0.1:9", .is_local = true, .error = "refused"};
       },
       "try --url http://127.0.0.1:8080", "vmonce serve"},
      {"server", kFail,
       [](DoctorFacts& f) { f.server = {.url = "http://lab", .error = "no such host"}; },
       "no such host", "--url"},
      {"server", kFail,
       [](DoctorFacts& f) {
         f.server.status = 503;
         f.server.code = "ledger_behind";
         f.server.detail = "an older copy";
       },
       "an older copy (ledger_behind)", "vmonce --url http://127.0.0.1:8080 hosts"},
      {"server", kFail,
       [](DoctorFacts& f) {
         f.server.status = 200;
         f.server.code = "http_200";
         f.server.detail = "<html>";
       },
       "<html>", "--set server.listen"},
      {"host", kFail, [](DoctorFacts& f) { f.server.hosts = {{"a", false, "no socket"}}; },
       "no socket", "vmonce hosts"},
      {"image", kFail,
       [](DoctorFacts& f) {
         f.images.clear();
         f.server.images = 0;
       },
       "names none", "vmonce image add"},
      {"image", kFail,
       [](DoctorFacts& f) {
         f.images.clear();
         f.server.images = 0;
       },
       "names none", "[[image]]"},
      {"image", kFail,
       [](DoctorFacts& f) { f.server.images_with_problems = {{"tiny", "The file changed."}}; },
       "The file changed.", "vmonce image add"},
      {"image", kFail, [](DoctorFacts& f) { f.server.images = 0; }, "another configuration",
       "start the service again"},
      {"public_key", kWarn, [](DoctorFacts& f) { f.public_keys.clear(); }, "console",
       "ssh-keygen -t ed25519"},
      {"clock", kWarn, [](DoctorFacts& f) { f.is_clock_synchronised = false; }, "time server",
       "sudo timedatectl set-ntp true"},
      {"clock", kWarn, [](DoctorFacts& f) { f.server.ahead = std::chrono::seconds(-60); }, "times",
       "sudo timedatectl set-ntp true"},
      {"clock", kFail, [](DoctorFacts& f) { f.year = 1970; }, "wrongly", "timedatectl"},
  };
}

std::vector<Ill> HostIlls() {
  constexpr auto kWarn = FindingResult::kWarn;
  constexpr auto kFail = FindingResult::kFail;
  return {
      {"kvm", kWarn, [](DoctorFacts& f) { f.kvm = {true, false, ENOENT, "", false, "x"}; },
       "there is no /dev/kvm", "sudo modprobe -a kvm_intel kvm_amd"},
      {"kvm", kWarn,
       [](DoctorFacts& f) {
         f.kvm = {true, true, EACCES, "kvm", false, "x"};
         f.user.known_groups = f.user.session_groups = {"ann"};
       },
       "no right", "sudo usermod -aG kvm ann, then log in again"},
      {"kvm", kWarn,
       [](DoctorFacts& f) {
         f.kvm = {true, true, EACCES, "kvm", false, "x"};
         f.user.session_groups = {"ann"};
       },
       "no right", "newgrp kvm"},
      {"kvm", kFail,
       [](DoctorFacts& f) {
         f.kvm = {true, true, 0, "kvm", false, "a processor hangs"};
         f.hosts[0].accel = "kvm";
       },
       "a processor hangs", "nested=1"},
      {"session", kWarn, [](DoctorFacts& f) { f.user.session_groups = {"ann", "libvirt"}; },
       "after logging in", "newgrp kvm"},
      {"session", kFail, [](DoctorFacts& f) { f.user.session_groups = {"ann", "kvm"}; },
       "after logging in", "newgrp libvirt"},
      {"qemu", kFail, [](DoctorFacts& f) { f.missing_programs = {"qemu-img", "genisoimage"}; },
       "made with them", "sudo apt install qemu-utils genisoimage"},
      {"libvirt", kFail, [](DoctorFacts& f) { f.has_libvirt_driver = false; },
       "libvirt_driver_qemu.so", "sudo apt install libvirt-daemon libvirt-daemon-driver-qemu"},
      {"libvirt", kFail, [](DoctorFacts& f) { f.hosts[1].connect_error = ENOENT; },
       "no such socket", "sudo apt install libvirt-daemon-system"},
      {"libvirt", kFail, [](DoctorFacts& f) { f.hosts[1].connect_error = ECONNREFUSED; }, "refused",
       "sudo systemctl start libvirtd"},
      {"libvirt", kFail,
       [](DoctorFacts& f) {
         f.hosts[1].connect_error = EACCES;
         f.user.known_groups = f.user.session_groups = {"ann"};
       },
       "no right", "sudo usermod -aG libvirt ann"},
      {"qemu_user", kFail,
       [](DoctorFacts& f) {
         f.user.id = 0;
         f.qemu_user.reset();
       },
       "looks it up", "sudo useradd --system"},
      {"root_path", kFail, [](DoctorFacts& f) { f.hosts[0].root = "/" + std::string(200, 'a'); },
       "201 bytes", "shorter"},
  };
}

std::vector<Ill> PlaceIlls() {
  constexpr auto kWarn = FindingResult::kWarn;
  constexpr auto kFail = FindingResult::kFail;
  return {
      {"network", kWarn,
       [](DoctorFacts& f) { f.hosts[1].network->state = NetworkFacts::State::kInactive; },
       "cannot start", "virsh -c 'qemu:///system' net-start default"},
      {"network", kWarn,
       [](DoctorFacts& f) { f.hosts[1].network->state = NetworkFacts::State::kAbsent; },
       "cannot start", "net-define /usr/share/libvirt/networks/default.xml"},
      {"network", kWarn,
       [](DoctorFacts& f) {
         f.hosts[1].network =
             NetworkFacts{NetworkFacts::State::kUnknown, "default", "", "timed out"};
       },
       "timed out", "net-list --all"},
      {"dhcp", kWarn, [](DoctorFacts& f) { f.firewall.reset(); }, "only root",
       "sudo vmonce doctor"},
      {"dhcp", kWarn, [](DoctorFacts& f) { f.firewall = kClosedFirewall; }, "no address",
       "sudo nft insert rule inet filter input iifname virbr0"},
      {"dhcp", kWarn,
       [](DoctorFacts& f) {
         f.firewall = kClosedFirewall;
         f.has_ufw = true;
       },
       "no address", "sudo ufw allow in on virbr0"},
      {"folders", kFail, [](DoctorFacts& f) { f.paths[0].parts[1].mode = S_IFDIR | 0700; },
       "may not pass /pool", "sudo setfacl -m u:libvirt-qemu:x /pool"},
      {"folders", kWarn, [](DoctorFacts& f) { f.state = {true, false, "vmonce"}; },
       "belongs to vmonce", "sudo -u vmonce vmonce doctor"},
      {"folders", kFail, [](DoctorFacts& f) { f.state = {false, false, "root"}; },
       "belongs to root", "sudo install -d -m 700 -o ann /var/lib/vmonce"},
      {"apparmor", kFail, [](DoctorFacts& f) { f.has_apparmor_helper = false; }, "virt-aa-helper",
       "sudo apt install libvirt-daemon-system"},
      {"disk", kWarn, [](DoctorFacts& f) { f.disk_free_mib = 2'000; }, "grow", "du -xh"},
      {"disk", kFail, [](DoctorFacts& f) { f.disk_free_mib = 100; }, "written", "du -xh"},
      {"memory", kWarn, [](DoctorFacts& f) { f.memory_free_mib = 500; }, "512 MiB", "ps -eo"},
      {"memory", kFail, [](DoctorFacts& f) { f.memory_free_mib = 64; }, "512 MiB", "ps -eo"},
  };
}

TEST(Doctor, TellsEveryIllWithItsReasonAndRepair) {
  std::vector<Ill> ills = ServiceIlls();
  for (Ill& ill : HostIlls()) ills.push_back(std::move(ill));
  for (Ill& ill : PlaceIlls()) ills.push_back(std::move(ill));
  std::set<std::string> told;
  for (const Ill& ill : ills) {
    DoctorFacts facts = Well();
    ill.spoil(facts);
    bool is_found = false;
    for (const Finding& finding : Diagnose(facts)) {
      if (finding.name != ill.name || finding.result == FindingResult::kOk) continue;
      is_found = true;
      EXPECT_EQ(finding.result, ill.result) << ill.name << ": " << finding.what;
      EXPECT_TRUE(finding.why.contains(ill.why)) << ill.name << ": " << finding.why;
      EXPECT_TRUE(finding.repair.contains(ill.repair)) << ill.name << ": " << finding.repair;
    }
    EXPECT_TRUE(is_found) << ill.name << " with " << ill.repair;
    told.insert(ill.name);
  }
  EXPECT_EQ(told.size(), 18u) << "a check is never seen to fail";
}

TEST(Doctor, AsksNothingOfThisComputerForHostsElsewhere) {
  DoctorFacts facts = Well();
  facts.hosts.resize(1);
  facts.hosts[0].needs = HostNeeds::kNothing;
  facts.kvm = {};
  facts.has_libvirt_driver = false;
  facts.missing_programs = {"qemu-img"};
  facts.memory_free_mib = 10;
  for (const Finding& finding : Diagnose(facts)) {
    EXPECT_EQ(finding.result, FindingResult::kOk) << finding.name << ": " << finding.what;
  }
}

TEST(Doctor, ADirectoryWithAnAccessListOrOfTheQemuGroupIsPassed) {
  DoctorFacts facts = Well();
  facts.paths[0].parts[1] = {"/pool", 0, 0, S_IFDIR | 0700, true};
  EXPECT_EQ(CheckFolders(facts)[0].result, FindingResult::kOk);
  facts.paths[0].parts[1] = {"/pool", 0, 107, S_IFDIR | 0710, false};
  EXPECT_EQ(CheckFolders(facts)[0].result, FindingResult::kOk);
  facts.paths[0].parts[1] = {"/pool", 64055, 0, S_IFDIR | 0700, false};
  EXPECT_EQ(CheckFolders(facts)[0].result, FindingResult::kOk);
  // The file itself is handed over by libvirt.
  facts.paths[0].parts[1] = {"/pool", 0, 0, S_IFREG | 0600, false};
  EXPECT_EQ(CheckFolders(facts)[0].result, FindingResult::kOk);
}

TEST(Doctor, AFirewallRuleForTheBridgeOrForDhcpLetsGuestsIn) {
  const auto drops = [](std::string_view rule, std::string_view table) {
    std::string chain;
    const std::string ruleset = fmt::format(
        R"({{"nftables":[{{"metainfo":{{}}}},{{"chain":{{"family":"inet","table":"filter",)"
        R"("name":"input","hook":"input","policy":"drop"}}}},)"
        R"({{"rule":{{"family":"inet","table":"{}","chain":"any","expr":[{}]}}}}]}})",
        table, rule);
    return DropsDhcp(ruleset, "virbr0", chain);
  };
  const std::string by_name =
      R"({"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"virbr0"}},{"accept":null})";
  const std::string by_port =
      R"({"match":{"left":{"payload":{"field":"dport"}},"right":{"set":[53,67]}}},{"accept":null})";
  EXPECT_FALSE(drops(by_name, "filter"));
  EXPECT_FALSE(drops(by_port, "filter"));
  EXPECT_TRUE(drops(by_name, "other")) << "a drop in any table is final";
  EXPECT_TRUE(drops(R"({"match":{"right":"virbr0"}},{"drop":null})", "filter"));
  EXPECT_TRUE(drops(R"({"match":{"right":"eth0"}},{"accept":null})", "filter"));
  std::string chain;
  EXPECT_FALSE(DropsDhcp("no JSON", "virbr0", chain));
}

class DoctorCommand : public FakeWorld {
 protected:
  void ServeAll() {
    ExpectJson("GET /readyz", 200, R"({"status":"ready"})");
    ExpectJson("GET /v1/images", 200, R"({"items":[{"name":"tiny"}]})");
    ExpectJson("GET /v1/hosts", 200, R"({"items":[{"id":"local","reachable":true}]})");
  }
};

TEST_F(DoctorCommand, EndsWithNoughtWhenNothingFails) {
  facts_ = Well();
  ServeAll();
  EXPECT_EQ(Run({"doctor"}), 0) << terminal_.out;
  EXPECT_TRUE(Printed("ok    kvm         KVM boots a machine\n")) << terminal_.out;
  EXPECT_TRUE(Said("0 failing")) << terminal_.err;
}

TEST_F(DoctorCommand, WorksWithoutAServiceAndTriesItOnce) {
  facts_ = Well();
  Expect("GET /readyz", {FakeTransport::Refused()});
  EXPECT_EQ(Run({"doctor"}), 0) << terminal_.out;
  EXPECT_EQ(transport_.requests.size(), 1u);
  EXPECT_TRUE(Printed("warn  server")) << terminal_.out;
  EXPECT_TRUE(Printed("      repair: vmonce serve")) << terminal_.out;
  EXPECT_FALSE(Said("trying again")) << terminal_.err;
}

TEST_F(DoctorCommand, EndsWithOneWhenSomethingFailsAndPrintsDocuments) {
  facts_ = Well();
  facts_.has_libvirt_driver = false;
  ServeAll();
  EXPECT_EQ(Run({"doctor", "-o", "json"}), 1);
  const auto document = ParseStrictJson(terminal_.out);
  ASSERT_TRUE(document) << terminal_.out;
  int failing = 0;
  for (const auto& item : document->at("items").as_array()) {
    if (item.at("result") != "fail") continue;
    ++failing;
    EXPECT_EQ(item.at("name"), "libvirt");
    EXPECT_NE(item.at("repair"), "");
    EXPECT_NE(item.at("why"), "");
  }
  EXPECT_EQ(failing, 1);
  EXPECT_EQ(Run({"doctor", "-o", "name"}), 1);
  EXPECT_TRUE(Printed("kvm\n")) << terminal_.out;
}

TEST_F(DoctorCommand, HandsOnWhichConfigurationIsMeant) {
  facts_ = Well();
  ServeAll();
  EXPECT_EQ(Run({"doctor", "--config", "/x.toml", "--set", "log.level=debug"}), 0);
  ASSERT_EQ(looks_.size(), 1u);
  EXPECT_EQ(looks_[0].config_path, "/x.toml");
  EXPECT_EQ(looks_[0].overrides, std::vector<std::string>{"log.level=debug"});
}

TEST_F(DoctorCommand, ACreateThatReachesNobodyHereTellsWhatIsMissing) {
  facts_ = Well();
  facts_.has_libvirt_driver = false;
  facts_.public_keys.clear();
  Expect("POST /v1/vms", {FakeTransport::Refused()});
  EXPECT_EQ(Run({"create", "--image", "tiny", "--timeout", "1s"}), 3);
  EXPECT_TRUE(Said("fail: libvirt's QEMU driver is not installed")) << terminal_.err;
  EXPECT_TRUE(Said("repair: sudo apt install libvirt-daemon")) << terminal_.err;
  EXPECT_FALSE(Said("public key")) << "no cause of this: " << terminal_.err;
  ASSERT_EQ(looks_.size(), 1u);
  EXPECT_FALSE(looks_[0].with_kvm);
  EXPECT_EQ(terminal_.out, "");
}

TEST_F(DoctorCommand, ACreateThatTheHypervisorRefusesLooksAtTheProcessorToo) {
  facts_ = Well();
  facts_.kvm = {true, true, 0, "kvm", false, "a processor hangs"};
  facts_.hosts[0].accel = "kvm";
  ExpectJson("POST /v1/vms", 202,
             CreatedJson(OperationJson("accepted", "forward", "place"), VmJson("pending")));
  ExpectJson("GET /v1/operations/op-1", 200,
             OperationJson("failed", "failed", "start",
                           R"(,"failure":{"code":"hypervisor_refused","detail":"no",)"
                           R"("retryable":false})"));
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("failed"));
  ExpectJson("GET /v1/operations/op-1/timeline", 200, R"({"items":[]})");
  ExpectJson("GET /v1/vms/vm-1/console?offset=0", 409, R"({"code":"console_not_ready"})");
  EXPECT_EQ(Run({"create", "--image", "tiny"}), 1);
  EXPECT_TRUE(Said("a processor hangs")) << terminal_.err;
  ASSERT_EQ(looks_.size(), 1u);
  EXPECT_TRUE(looks_[0].with_kvm);
}

TEST_F(DoctorCommand, ACreateAtAServerElsewhereDoesNotLookHere) {
  facts_ = Well();
  transport_.handler = [](const client::HttpRequest&) { return FakeTransport::Refused(); };
  EXPECT_EQ(Run({"--url", "http://lab:1", "create", "--image", "tiny", "--timeout", "1s"}), 3);
  EXPECT_TRUE(looks_.empty());
}

}  // namespace
}  // namespace vmonce::app
