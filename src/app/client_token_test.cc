#include "app/client_token.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/temp_dir.h"

namespace vmonce::app {
namespace {

const std::string kToken = "vmo_" + std::string(64, 'a');
const std::string kOther = "vmo_" + std::string(64, 'b');
const std::string kUrl = "http://127.0.0.1:8080";

class ClientToken : public testing::Test {
 protected:
  Result<std::string> Find(const std::string& url = kUrl, const std::string& file = "") {
    return FindToken(url, file, [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    });
  }
  std::string File(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = dir_.File(name);
    EXPECT_TRUE(WriteFileAtomically(path, text, mode));
    return path;
  }

  TempDir dir_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ClientToken, IsNoneWhereNobodyGaveOne) {
  EXPECT_EQ(Find(), "");
  environment_["HOME"] = dir_.File("nobody");
  EXPECT_EQ(Find(), "");
}

TEST_F(ClientToken, IsTheNearestOneThatWasGiven) {
  environment_["VMONCE_TOKEN_FILE"] = File("b", kOther + "\n");
  EXPECT_EQ(Find(), kOther);
  environment_["VMONCE_TOKEN"] = kToken;
  EXPECT_EQ(Find(), kToken);
  EXPECT_EQ(Find(kUrl, File("c", kOther)), kOther);
}

TEST_F(ClientToken, OfTheListGoesToItsOwnServerOnly) {
  std::filesystem::create_directory(dir_.File("vmonce"));
  environment_["XDG_CONFIG_HOME"] = dir_.File("");
  File("vmonce/tokens", "# mine\n\n" + kUrl + "/ " + kToken + "\nhttps://lab.example " + kOther);
  EXPECT_EQ(Find(), kToken);
  EXPECT_EQ(Find("http://127.0.0.1:8081"), "");
  EXPECT_EQ(Find("http://localhost:8080"), "");
  EXPECT_EQ(Find("https://lab.example"), kOther);
}

TEST_F(ClientToken, IsNotTakenFromAFileThatOthersMayRead) {
  const auto token = Find(kUrl, File("a", kToken, 0640));
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().detail.find(kToken), std::string::npos);
  EXPECT_NE(token.error().detail.find("chmod 600"), std::string::npos);
}

TEST_F(ClientToken, IsNeverSentInClearTextBeyondThisMachine) {
  environment_["VMONCE_TOKEN"] = kToken;
  EXPECT_FALSE(Find("http://lab.example:8080"));
  EXPECT_FALSE(Find("http://127.0.0.1.example"));
  for (const char* url : {"http://localhost:1", "http://[::1]:1", "http://127.0.0.2"}) {
    EXPECT_EQ(Find(url), kToken) << url;
  }
}

TEST_F(ClientToken, ThatIsNoneIsAMistakeAndIsNotRepeated) {
  environment_["VMONCE_TOKEN"] = "hunter2";
  const auto token = Find();
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().detail.find("hunter2"), std::string::npos);
  EXPECT_FALSE(Find(kUrl, dir_.File("absent")));
}

}  // namespace
}  // namespace vmonce::app
