#include "app/client_settings.h"

#include "app/fake_world.h"
#include "base/json.h"

namespace vmonce::app {
namespace {

class Settings : public FakeWorld {
 protected:
  // "NAME VALUE ORIGIN" of one setting, the home's path written as HOME.
  std::string Shown(std::string_view name, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"config", "show", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Run(arguments);
    const auto document = ParseStrictJson(terminal_.out);
    if (!document) return terminal_.err;
    for (const auto& item : document->at("items").as_array()) {
      if (item.at("name").as_string() != name) continue;
      std::string origin(item.at("origin").as_string());
      if (origin.starts_with(home_.path())) origin = "HOME" + origin.substr(home_.path().size());
      return fmt::format("{} from {}", std::string_view(item.at("value").as_string()), origin);
    }
    return "absent";
  }
};

TEST_F(Settings, AFlagIsStrongerThanTheEnvironmentThanTheProfileThanTheFile) {
  EXPECT_EQ(Shown("client.url"), "http://127.0.0.1:8080 from default");
  WriteClientConfig("url = \"http://a\"\n");
  EXPECT_EQ(Shown("client.url"), "http://a from HOME/client.toml:1");
  WriteClientConfig(
      "url = \"http://a\"\ndefault_profile = \"lab\"\n[profile.lab]\nurl = \"http://b\"\n");
  EXPECT_EQ(Shown("client.url"), "http://b from HOME/client.toml:4");
  EXPECT_EQ(Shown("client.profile"), "lab from HOME/client.toml:2");
  environment_["VMONCE_URL"] = "http://c/";
  EXPECT_EQ(Shown("client.url"), "http://c/ from VMONCE_URL");
  EXPECT_EQ(Shown("client.url", {"--url", "http://d"}), "http://d from --url");
}

TEST_F(Settings, TheProfileIsChosenByFlagThenEnvironmentThenFile) {
  WriteClientConfig(
      "default_profile = \"a\"\n[profile.a]\nurl = \"http://a\"\n[profile.b]\nurl = \"http://b\"\n"
      "[profile.c]\nurl = \"http://c\"\n");
  EXPECT_EQ(Shown("client.url"), "http://a from HOME/client.toml:3");
  environment_["VMONCE_PROFILE"] = "b";
  EXPECT_EQ(Shown("client.url"), "http://b from HOME/client.toml:5");
  EXPECT_EQ(Shown("client.url", {"--profile", "c"}), "http://c from HOME/client.toml:7");
}

TEST_F(Settings, ThePersonalFileIsFoundInTheHome) {
  environment_.erase("VMONCE_CLIENT_CONFIG");
  environment_["HOME"] = home_.path();
  const Environ environment = [this](const char* name) -> std::optional<std::string> {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(PersonalClientPath(environment), home_.path() + "/.config/vmonce/client.toml");
  environment_["XDG_CONFIG_HOME"] = "relative";
  EXPECT_EQ(PersonalClientPath(environment), home_.path() + "/.config/vmonce/client.toml");
  environment_["XDG_CONFIG_HOME"] = "/elsewhere";
  EXPECT_EQ(PersonalClientPath(environment), "/elsewhere/vmonce/client.toml");
}

TEST_F(Settings, EveryMistakeIsToldWithItsPlaceAndRepair) {
  struct Row {
    const char* toml;
    std::vector<const char*> said;
  };
  const Row rows[] = {
      {"urls = \"http://a\"\n", {"client.toml:1:1", "did you mean \"url\"?"}},
      {"[profile.lab]\noutputs = \"json\"\n", {"client.toml:2:1", "[profile.lab]", "\"output\""}},
      {"output = \"xml\"\n", {"client.toml:1:", "choose one of \"table\""}},
      {"url = \"ftp://a\"\n", {"client.toml:1:", "is no URL of a server"}},
      {"profile = \"lab\"\n", {"client.toml:1:", "default_profile"}},
      {"default_profile = \"lab\"\n", {"client.toml:1:", "there is no profile \"lab\""}},
      {"url = \n", {"client.toml:1:", "TOML"}},
  };
  for (const Row& row : rows) {
    WriteClientConfig(row.toml);
    EXPECT_EQ(Run({"list"}), 2) << row.toml;
    for (const char* text : row.said) EXPECT_TRUE(Said(text)) << row.toml << terminal_.err;
    EXPECT_EQ(terminal_.out, "");
  }
  EXPECT_TRUE(transport_.requests.empty());
}

TEST_F(Settings, ACommandGoesToTheServerOfTheProfileAndHintsRepeatIt) {
  WriteClientConfig("[profile.here]\nurl = \"http://127.0.0.1:8080\"\noutput = \"name\"\n");
  ExpectJson("GET /v1/vms?name=web&limit=100", 200, R"({"items":[]})");
  EXPECT_EQ(Run({"--profile", "here", "get", "web"}), 6);
  EXPECT_TRUE(Said("vmonce --profile here list")) << terminal_.err;
  ExpectJson("GET /v1/images", 200, R"({"items":[{"name":"tiny","kind":"kernel"}]})");
  EXPECT_EQ(Run({"--profile", "here", "images"}), 0);
  EXPECT_EQ(terminal_.out, "tiny\n");
}

TEST_F(Settings, TheServicesSettingsAreShownWithTheirOrigin) {
  const std::string path = home_.File("vmonce.toml");
  ASSERT_TRUE(WriteFileAtomically(path, "[limits]\nworkers = 3\n", 0600));
  EXPECT_EQ(Shown("limits.workers", {"--config", path}), "3 from HOME/vmonce.toml:2");
  EXPECT_EQ(Shown("limits.workers", {"--config", path, "--set", "limits.workers=4"}),
            "4 from --set limits.workers=4");
  EXPECT_EQ(Run({"config", "show", "--origin", "--config", path}), 0);
  EXPECT_TRUE(Printed("ORIGIN")) << terminal_.out;
  EXPECT_EQ(Run({"config", "show", "--config", path}), 0);
  EXPECT_FALSE(Printed("ORIGIN")) << terminal_.out;
}

TEST_F(Settings, CheckTellsEveryMistakeAndEndsWithTwo) {
  const std::string path = home_.File("vmonce.toml");
  ASSERT_TRUE(WriteFileAtomically(path, "[limits]\nworkers = 0\nworker = 1\n", 0600));
  EXPECT_EQ(Run({"config", "check", "--config", path}), 2);
  EXPECT_TRUE(Said("vmonce.toml:2:") && Said("vmonce.toml:3:")) << terminal_.err;
  EXPECT_EQ(terminal_.out, "");
  EXPECT_EQ(Run({"config", "check", "--config", path, "-o", "json"}), 2);
  const auto document = ParseStrictJson(terminal_.out);
  ASSERT_TRUE(document);
  EXPECT_FALSE(document->at("valid").as_bool());
  EXPECT_EQ(document->at("mistakes").as_array().size(), 2u);
  ASSERT_TRUE(WriteFileAtomically(path, "[limits]\nworkers = 1\n", 0600));
  EXPECT_EQ(Run({"config", "check", "--config", path}), 0);
  EXPECT_TRUE(Said("the configuration is valid")) << terminal_.err;
}

TEST(MaskSecret, HidesPasswordsAndWhatIsCalledASecret) {
  const auto masked = [](const char* name, const char* value) {
    return MaskSecret({name, value, ""});
  };
  EXPECT_EQ(masked("host.a.uri", "qemu+ssh://me:pass@host:22/system"),
            "qemu+ssh://me:***@host:22/system");
  EXPECT_EQ(masked("host.a.uri", "qemu+ssh://me@host:22/system"), "qemu+ssh://me@host:22/system");
  EXPECT_EQ(masked("host.a.uri", "qemu:///embed?root=/a"), "qemu:///embed?root=/a");
  EXPECT_EQ(masked("x.client_secret", "abc"), "***");
  EXPECT_EQ(masked("x.token", ""), "");
  EXPECT_EQ(masked("x.token_file", "/a"), "/a");
}

}  // namespace
}  // namespace vmonce::app
