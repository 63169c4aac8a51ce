#include "app/create_request.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temp_dir.h"

namespace vmonce::app {
namespace {

class CreateBody : public testing::Test {
 protected:
  std::string Write(const std::string& name, std::string_view text) {
    std::ofstream(dir_.File(name)) << text;
    return dir_.File(name);
  }
  TempDir dir_;
  CreateFields fields_{.image = "tiny"};
};

TEST_F(CreateBody, HoldsOnlyWhatWasGiven) {
  EXPECT_EQ(boost::json::serialize(*BuildCreateBody(fields_)), R"({"image":"tiny"})");
}

TEST_F(CreateBody, HoldsEveryField) {
  fields_ = {.name = "web",
             .image = "tiny",
             .memory = "2G",
             .disk = "10",
             .hostname = "h",
             .user_data_file = Write("user-data", "#cloud-config\n"),
             .cpus = 2,
             .count = 3,
             .ssh_key_files = {Write("keys", "# mine\nssh-ed25519 AAAA a\r\n\nssh-rsa BBBB b")},
             .labels = {"a=1", "b=x=y"}};
  const auto body = BuildCreateBody(fields_);
  ASSERT_TRUE(body) << body.error().detail;
  EXPECT_EQ(body->at("memory_mib"), 2048);
  EXPECT_EQ(body->at("disk_gib"), 10);
  EXPECT_EQ(boost::json::serialize(body->at("ssh_keys")),
            R"(["ssh-ed25519 AAAA a","ssh-rsa BBBB b"])");
  EXPECT_EQ(boost::json::serialize(body->at("labels")), R"({"a":"1","b":"x=y"})");
  EXPECT_EQ(body->at("user_data"), "#cloud-config\n");
  EXPECT_EQ(body->at("count"), 3);
}

TEST_F(CreateBody, HoldsWaysIn) {
  fields_.forwards = {"22", "8022:2222", "53/udp", "5353:54/udp"};
  fields_.network = "user";
  const auto body = BuildCreateBody(fields_);
  ASSERT_TRUE(body) << body.error().detail;
  EXPECT_EQ(body->at("network"), "user");
  EXPECT_EQ(body->at("forward"), boost::json::parse(R"([
      {"guest_port": 22}, {"guest_port": 2222, "host_port": 8022},
      {"guest_port": 53, "protocol": "udp"},
      {"guest_port": 54, "host_port": 5353, "protocol": "udp"}])"));
  for (const char* wrong :
       {"", "ssh", "0", "65536", "22:", ":22", "1:2:3", "22/", "22/icmp", "-1"}) {
    fields_.forwards = {wrong};
    EXPECT_EQ(BuildCreateBody(fields_).error().code, ErrorCode::kInvalid) << wrong;
  }
}

TEST_F(CreateBody, CarriesUserDataThatIsNoTextAsBase64) {
  fields_.user_data_file = Write("gz", std::string_view("\x1f\x8b\x00\xff", 4));
  EXPECT_EQ(BuildCreateBody(fields_)->at("user_data_base64"), "H4sA/w==");
}

TEST_F(CreateBody, NeverSendsAPrivateKey) {
  fields_.ssh_key_files = {Write("id", "-----BEGIN OPENSSH PRIVATE KEY-----\n")};
  EXPECT_FALSE(BuildCreateBody(fields_));
}

TEST_F(CreateBody, RefusesLabelsThatAreNone) {
  for (const std::vector<std::string>& labels :
       {std::vector<std::string>{"a"}, {"=b"}, {"a=1", "a=2"}}) {
    fields_.labels = labels;
    EXPECT_FALSE(BuildCreateBody(fields_)) << labels.back();
  }
}

TEST(Sizes, AreReadInTheirUnits) {
  EXPECT_EQ(ParseMemoryMib("512"), 512);
  EXPECT_EQ(ParseMemoryMib("512M"), 512);
  EXPECT_EQ(ParseMemoryMib("2g"), 2048);
  EXPECT_EQ(ParseMemoryMib("1TiB"), 1 << 20);
  EXPECT_EQ(ParseDiskGib("10GB"), 10);
  EXPECT_EQ(ParseDiskGib("1T"), 1024);
  for (const auto* bad :
       {"", "0", "-1", "1.5G", "G", "5K", "5GG", "5Gib", "9999999999999", "4096T"}) {
    EXPECT_EQ(ParseMemoryMib(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace vmonce::app
