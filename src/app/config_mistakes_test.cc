// What a wrong configuration is answered with: the place, what is wrong, and the repair.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "app/config.h"
#include "base/temp_dir.h"

namespace vmonce::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ConfigMistakesTest : public testing::Test {
 protected:
  ConfigMistakesTest() { std::ofstream(dir_.File("file")) << "x"; }

  // Formatted, without the directory.
  std::vector<std::string> Mistakes(const std::string& toml) {
    std::ofstream(dir_.File("v.toml")) << toml;
    const auto config = ReadConfig(dir_.File("v.toml"), {}, nullptr);
    std::vector<std::string> lines;
    if (config.has_value()) return lines;
    for (const ConfigMistake& mistake : config.error()) {
      EXPECT_EQ(mistake.file, dir_.File("v.toml"));
      lines.push_back(mistake.Format().substr(dir_.path().size() + 1));
    }
    return lines;
  }

  TempDir dir_;
};

TEST_F(ConfigMistakesTest, AnUnknownKeyNamesItsNeighbour) {
  EXPECT_THAT(Mistakes("[[host]]\nid = \"a\"\n  memory_mb = 5\n"),
              ElementsAre("v.toml:3:3: unknown key \"memory_mb\" in [[host]]; did you mean "
                          "\"memory_mib\"?"));
  EXPECT_THAT(Mistakes("[log]\ncolour = 1\n"),
              ElementsAre("v.toml:2:1: unknown key \"colour\" in [log]; known are level"));
}

// The library's own assertion ended the program here.
TEST_F(ConfigMistakesTest, ATableWithoutANameIsAMistakeLikeAnyOther) {
  for (const std::string line : {"[.x]", "[=]", "[[.x]]"}) {
    EXPECT_THAT(Mistakes("\n" + line + "\n"),
                ElementsAre(AllOf(HasSubstr("v.toml:2:"), HasSubstr("expected bare key"))))
        << line;
  }
}

TEST_F(ConfigMistakesTest, SectionsAreKnownAndWrittenAsTheyShould) {
  EXPECT_THAT(Mistakes("[sever]\n"), ElementsAre(HasSubstr("did you mean \"server\"?")));
  EXPECT_THAT(Mistakes("listen = \"127.0.0.1:1\"\n"),
              ElementsAre("v.toml:1:1: \"listen\" stands in no section; put it below its section's "
                          "line, such as [server]"));
  EXPECT_THAT(Mistakes("[host]\nid = \"a\"\n"), ElementsAre(HasSubstr("the line [[host]]")));
  EXPECT_THAT(Mistakes("[[log]]\nlevel = \"info\"\n"), ElementsAre(HasSubstr("the line [log]")));
  EXPECT_THAT(Mistakes("log = 3\n"), ElementsAre(HasSubstr("the line [log]")));
}

TEST_F(ConfigMistakesTest, WrongTypesSayWhatIsWantedAndSeen) {
  EXPECT_THAT(Mistakes("[limits]\nworkers = \"8\"\n"),
              ElementsAre("v.toml:2:11: \"workers\" in [limits] must be an integer, not a string; "
                          "write workers = 8"));
  EXPECT_THAT(Mistakes("[limits]\nworkers = 1.5\n"), ElementsAre(HasSubstr("with a fraction")));
  EXPECT_THAT(Mistakes("[limits]\nlease_ttl = 15\n"),
              ElementsAre("v.toml:2:13: \"lease_ttl\" in [limits] must be a duration, not an "
                          "integer; write a number and a unit in quotes, such as \"15s\""));
  EXPECT_THAT(Mistakes("[state]\ndir = true\n"), ElementsAre(HasSubstr("not a boolean")));
  EXPECT_THAT(Mistakes("[server]\nallowed_hosts = \"a\"\n"),
              ElementsAre(HasSubstr("write allowed_hosts = [\"...\"]")));
  EXPECT_THAT(Mistakes("[server]\nallowed_hosts = [1]\n"), ElementsAre(HasSubstr("v.toml:2:18:")));
}

TEST_F(ConfigMistakesTest, OutOfRangeSaysTheRange) {
  const std::vector<std::pair<std::string, std::string>> kWrong = {
      {"[limits]\nworkers = 0", "give 1 to 256"},
      {"[limits]\nworkers = 257", "give 1 to 256"},
      {"[limits]\nworkers = -9223372036854775808", "give 1 to 256"},
      {"[limits]\nlease_ttl = \"499ms\"", "give \"500ms\" to \"10m\""},
      {"[limits]\nlease_ttl = \"11m\"", "give \"500ms\" to \"10m\""},
      {"[limits]\nreconcile_every = \"0s\"", "give \"100ms\" to \"1h\""},
      {"[limits]\nlease_ttl = \"fast\"", "write a number and one of ms, s, m, h, d"},
      {"[retention]\nretention = \"23h\"", "give \"1d\" to"},
      {"[retention]\nretention = \"1441m\"", "give \"1d\" or \"25h\""},
      {"[ledger]\ncache_mib = 0", "give 1 to"},
      {"[quota]\nvms = -1", "give 0 to"},
      {"[[host]]\nid = \"a\"\nvms = 0", "give 1 to"},
  };
  for (const auto& [toml, fix] : kWrong) {
    EXPECT_THAT(Mistakes(toml), ElementsAre(HasSubstr(fix))) << toml;
  }
}

TEST_F(ConfigMistakesTest, WhoListensWhereOthersReachIsProtected) {
  for (const char* address : {"0.0.0.0:80", "192.168.1.1:80", "[::]:80", "128.0.0.1:80",
                              "[::ffff:127.0.0.1]:80", "[2001:db8::1]:80"}) {
    EXPECT_THAT(Mistakes(std::string("[server]\nlisten = \"") + address + "\""),
                ElementsAre(AllOf(HasSubstr("v.toml:2:10: "), HasSubstr("tls_cert and tls_key"),
                                  HasSubstr("behind_tls_proxy = true"), HasSubstr("ssh -L"))))
        << address;
  }
  for (const char* address : {"example.org:80", "127.0.0.1.evil:80", "127.0.0:80", "127.0.0.256:1",
                              "127.0.0.1.:80", "127.0.0.1.2:80", "127.1:80"}) {
    EXPECT_THAT(Mistakes(std::string("[server]\nlisten = \"") + address + "\""),
                ElementsAre(HasSubstr("is no IP address")))
        << address;
  }
  for (const char* address : {"", "127.0.0.1", "8080", ":8080", "127.0.0.1:", "127.0.0.1:x",
                              "127.0.0.1:65536", "127.0.0.1:-1", "::1:80"}) {
    EXPECT_THAT(Mistakes(std::string("[server]\nlisten = \"") + address + "\""),
                ElementsAre(HasSubstr("is not ADDRESS:PORT")))
        << address;
  }
  EXPECT_THAT(Mistakes("[server]\nallowed_hosts = [\"a:80\"]"),
              ElementsAre(HasSubstr("without scheme and port")));
}

TEST_F(ConfigMistakesTest, TlsIsWholeOrNotThere) {
  EXPECT_THAT(Mistakes("[server]\ntls_cert = \"c.pem\"\n"),
              ElementsAre(HasSubstr("\"tls_cert\" stands without \"tls_key\"")));
  EXPECT_THAT(Mistakes("[server]\ntls_key = \"k.pem\"\n"),
              ElementsAre(HasSubstr("\"tls_key\" stands without \"tls_cert\"")));
  EXPECT_THAT(Mistakes("[server]\nclient_ca = \"c.pem\"\n"), ElementsAre(HasSubstr("needs TLS")));
  EXPECT_THAT(Mistakes("[server]\nclient_cert = \"optional\"\n"),
              ElementsAre(HasSubstr("says nothing without \"client_ca\"")));
  EXPECT_THAT(Mistakes("[server]\ntls_cert=\"c\"\ntls_key=\"k\"\nclient_ca=\"a\"\n"
                       "client_cert = \"never\"\n"),
              ElementsAre(HasSubstr("choose one of \"required\", \"optional\"")));
  EXPECT_THAT(Mistakes("[server]\nbehind_tls_proxy = \"yes\"\n"),
              ElementsAre(HasSubstr("must be true or false, not a string")));
}

TEST_F(ConfigMistakesTest, TheStateDirectorysNameIsPlain) {
  EXPECT_THAT(Mistakes("[state]\ndir = \"/srv/a b\"\n"),
              ElementsAre(HasSubstr("v.toml:2:7: the path \"/srv/a b\" may be misread")));
}

// report 61
TEST_F(ConfigMistakesTest, AnotherLedgerIsRefusedAndNeverReplaced) {
  for (const char* kind : {"memory", "postgres", "SQLite", ""}) {
    EXPECT_THAT(Mistakes(std::string("[ledger]\nkind = \"") + kind + "\""),
                ElementsAre(std::string("v.toml:2:8: this version has no ledger of kind \"") +
                            kind + "\", and takes no other in its place; write kind = \"sqlite\""));
  }
}

TEST_F(ConfigMistakesTest, HostsAreToldApart) {
  EXPECT_THAT(
      Mistakes("[[host]]\nid = \"a\"\n[[host]]\nid = \"a\"\nuri = \"simulated:\"\n"),
      ElementsAre("v.toml:4:6: the host id \"a\" was given before on line 2; give every host its "
                  "own id"));
  EXPECT_THAT(
      Mistakes("[[host]]\nid = \"a\"\nuri = \"simulated:\"\n[[host]]\nid = \"b\"\n"
               "uri = \"simulated:\"\n"),
      ElementsAre(HasSubstr("v.toml:6:7: the URI \"simulated:\" was given before on line 3")));
  EXPECT_THAT(Mistakes("[[host]]\nid = \"a\"\n[[host]]\nid = \"b\"\n"),
              ElementsAre(HasSubstr("v.toml:3:1: the URI")));
  EXPECT_THAT(Mistakes("[[host]]\nid = \"a\"\n[[host]]\nid = \"b\"\n"
                       "uri = \"qemu:///embed?root=/b\"\n"),
              ElementsAre(HasSubstr("serves one embedded hypervisor")));
}

TEST_F(ConfigMistakesTest, AHostIsWhatItsUriCanBe) {
  const std::vector<std::pair<std::string, std::string>> kWrong = {
      {"uri = \"qemu:///embed?root=here\"", "is no plain absolute path"},
      {"uri = \"qemu:///embed?root=/a%20b\"", "is no plain absolute path"},
      {"uri = \"qemu:///embed\"", "is no URI of a hypervisor"},
      {"uri = \"xen:///\"", "is no URI of a hypervisor"},
      {"uri = \"\"", "is no URI of a hypervisor"},
      {"accel = \"kwm\"", "did you mean \"kvm\"?"},
      {"accel = \"hyperspeed\"", "choose one of \"auto\", \"kvm\", \"tcg\""},
      {"pool = \"p\"", "needs a libvirt daemon"},
      {"uri = \"simulated:\"\npool_path = \"/p\"", "needs a libvirt daemon"},
      {"uri = \"qemu:///system\"\npool_path = \"p\"", "is not absolute"},
      {"latency_ms = 3", "simulated hosts only"},
      {"forward_ports = \"22-80\"", "is no range of ports"},
      {"forward_ports = \"2000\"", "write first and last"},
      {"forward_address = \"::1\"", "is no IPv4 address"},
      {"forward_address = \"localhost\"", "is no IPv4 address"},
      {"networks = [\"default\"]", "the embedded hypervisor has no libvirt network"},
      {"uri = \"qemu:///system\"\nnetworks = [\"user\"]", "\"user\" is always there"},
      {"uri = \"qemu:///system\"\nnetworks = [\"a b\"]", "is no network to be offered"},
  };
  for (const auto& [line, text] : kWrong) {
    EXPECT_THAT(Mistakes("[[host]]\nid = \"a\"\n" + line), ElementsAre(HasSubstr(text))) << line;
  }
  EXPECT_THAT(Mistakes("[[host]]\naccel = \"tcg\"\n"),
              ElementsAre("v.toml:1:1: [[host]] lacks \"id\"; add id = \"local\""));
  for (const char* id : {"", "a b", "ä", "../a", "a/b", "a\\u0000"}) {
    EXPECT_THAT(Mistakes(std::string("[[host]]\nid = \"") + id + "\""), SizeIs(1)) << id;
  }
}

TEST_F(ConfigMistakesTest, ImagesAreWhole) {
  const std::string image = "[[image]]\nname = \"i\"\n";
  const std::string disk = image + "kind = \"disk\"\ndisk = \"file\"\n";
  const std::string raw = disk + "disk_format = \"raw\"\n";
  EXPECT_THAT(Mistakes(raw), testing::IsEmpty());
  const std::vector<std::pair<std::string, std::string>> kWrong = {
      {"[[image]]\nkind = \"kernel\"\nkernel = \"file\"", "v.toml:1:1: [[image]] lacks \"name\""},
      {image, "lacks \"kind\""},
      {image + "kind = \"iso\"", "choose one of \"disk\", \"kernel\""},
      {image + "kind = 3", "must be a string"},
      {image + "kind = \"disk\"", "lacks \"disk\""},
      {disk, "lacks \"disk_format\""},
      {disk + "disk_format = \"vmdk\"", "choose one of \"qcow2\", \"raw\""},
      {raw + "kernel = \"file\"", "is for kind = \"kernel\""},
      {image + "kind = \"kernel\"", "lacks \"kernel\""},
      {image + "kind = \"kernel\"\nkernel = \"file\"\ndisk_format = \"raw\"", "without \"disk\""},
      {raw + "aliases = [\"a b\"]", "is no name for an image"},
      {raw + "aliases = [\"i\"]", "was given before on line 2"},
      {raw + "[[image]]\nname = \"i\"\nkind = \"kernel\"\nkernel = \"file\"",
       "v.toml:7:8: the image name \"i\" was given before on line 2"},
      {image + "kind = \"kernel\"\nkernel = \"file\"\ncmdline = \"a\\nb\"", "control character"},
      {image + "kind = \"kernel\"\nkernel = \"file\"\ncmdline = \"" + std::string(2048, 'x') + "\"",
       "shorten it to 2047"},
  };
  for (const auto& [toml, text] : kWrong) {
    EXPECT_THAT(Mistakes(toml), ElementsAre(HasSubstr(text))) << toml;
  }
}

TEST_F(ConfigMistakesTest, AnImagesFileMustBeThere) {
  EXPECT_THAT(Mistakes("[[image]]\nname = \"i\"\nkind = \"kernel\"\nkernel = \"gone\"\n"
                       "initrd = \".\"\n"),
              ElementsAre("v.toml:4:10: the file of \"kernel\", " + dir_.File("gone") +
                              ", does not exist; mend the path, or put a readable file there",
                          HasSubstr("is a directory")));
}

TEST_F(ConfigMistakesTest, AllAreToldInTheOrderOfTheFile) {
  EXPECT_THAT(Mistakes("[log]\nlevel = \"loud\"\n[ledger]\nkind = \"x\"\n[server]\nport = 1\n"),
              ElementsAre(HasSubstr("v.toml:2:"), HasSubstr("v.toml:4:"), HasSubstr("v.toml:6:")));
}

TEST_F(ConfigMistakesTest, AtMostTwentyAreTold) {
  std::string toml = "[log]\n";
  for (int i = 0; i < 50; ++i) toml += "k" + std::to_string(i) + " = 1\n";
  EXPECT_THAT(Mistakes(toml), SizeIs(20));
}

}  // namespace
}  // namespace vmonce::app
