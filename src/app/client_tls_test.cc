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
  Result<client::TlsIdentity> Read(const ClientTlsFlags& flags) {
    return ReadClientTls(flags, [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    });
  }

  TempDir dir_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ClientTlsTest, AFlagGoesBeforeTheEnvironment) {
  EXPECT_EQ(Read({})->ca_file, "");
  environment_ = {{"VMONCE_CACERT", dir_.File("a")},
                  {"VMONCE_CLIENT_CERT", dir_.File("b")},
                  {"VMONCE_CLIENT_KEY", dir_.File("c")}};
  const auto own = Read({.cacert = dir_.File("b")});
  ASSERT_TRUE(own) << own.error().detail;
  EXPECT_EQ(own->ca_file, dir_.File("b"));
  EXPECT_EQ(own->certificate, dir_.File("b"));
  EXPECT_EQ(own->key, dir_.File("c"));
}

TEST_F(ClientTlsTest, TellsWhatCannotBeUsed) {
  const auto absent = Read({.cacert = dir_.File("absent")});
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().detail, testing::StartsWith("--cacert: "));
  environment_ = {{"VMONCE_CLIENT_CERT", dir_.File("a")}};
  const auto half = Read({});
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().detail, testing::HasSubstr("go together"));
  environment_ = {{"VMONCE_CLIENT_KEY", dir_.File("absent")}};
  EXPECT_THAT(Read({}).error().detail, testing::StartsWith("VMONCE_CLIENT_KEY: "));
}

}  // namespace
}  // namespace vmonce::app
