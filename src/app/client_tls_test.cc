#include "app/client_tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/temp_dir.h"

namespace vmonce::app {
namespace {

class ClientTlsTest : public testing::Test {
 protected:
  ClientTlsTest() {
    for (const char* name : {"a", "b", "c"}) std::ofstream(dir_.File(name)) << "x";
  }
  // Reads the settings from flags, the environment and client.toml with `toml`.
  Result<client::TlsIdentity> Read(const ClientFlags& flags, const std::string& toml = "") {
    std::ofstream(dir_.File("client.toml")) << toml;
    environment_["VMONCE_CLIENT_CONFIG"] = dir_.File("client.toml");
    const auto settings =
        ReadClientSettings(flags, [this](const char* name) -> std::optional<std::string> {
          const auto found = environment_.find(name);
          return found == environment_.end() ? std::nullopt : std::optional(found->second);
        });
    if (!settings) return Fail(ErrorCode::kInternal, settings.error().front().Format());
    return ReadClientTls(*settings);
  }

  TempDir dir_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ClientTlsTest, AFlagGoesBeforeTheEnvironmentAndThatBeforeTheFile) {
  EXPECT_EQ(Read({})->ca_file, "");
  EXPECT_EQ(Read({.profile = "lab"}, "[profile.lab]\ncacert = \"a\"\n")->ca_file, dir_.File("a"));
  environment_ = {{"VMONCE_CACERT", dir_.File("a")},
                  {"VMONCE_CLIENT_CERT", dir_.File("b")},
                  {"VMONCE_CLIENT_KEY", dir_.File("c")}};
  const auto own = Read({.cacert = dir_.File("b")}, "client_key = \"a\"\n");
  ASSERT_TRUE(own) << own.error().detail;
  EXPECT_EQ(own->ca_file, dir_.File("b"));
  EXPECT_EQ(own->certificate, dir_.File("b"));
  EXPECT_EQ(own->key, dir_.File("c"));
}

TEST_F(ClientTlsTest, TellsWhatCannotBeUsed) {
  const auto absent = Read({.cacert = dir_.File("absent")});
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().detail, testing::StartsWith("--cacert (VMONCE_CACERT): "));
  environment_ = {{"VMONCE_CLIENT_CERT", dir_.File("a")}};
  const auto half = Read({});
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().detail, testing::HasSubstr("go together"));
}

}  // namespace
}  // namespace vmonce::app
