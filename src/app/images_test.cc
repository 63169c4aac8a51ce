#include <fstream>

#include "app/fake_world.h"
#include "base/sha256.h"

namespace vmonce::app {
namespace {

using client::FakeTransport;

constexpr std::size_t kPart = 1 << 20;

class Images : public FakeWorld {
 protected:
  // A file in the person's home; answers its path.
  std::string WriteFile(const std::string& name, const std::string& content) {
    const std::string path = home_.File(name);
    std::ofstream(path) << content;
    return path;
  }
  static std::string FilePath(const std::string& content) {
    return "/v1/image-files/" + ToHex(Sha256(content));
  }
  static std::string Put(const std::string& content, std::size_t offset) {
    return fmt::format("PUT {}?size={}&offset={}", FilePath(content), content.size(), offset);
  }
  static std::string Received(std::size_t received, bool is_complete = false) {
    return fmt::format(R"({{"received":{},"is_complete":{}}})", received, is_complete);
  }
  void ServeAdd(std::string_view result) {
    ExpectJson(
        "POST /v1/images", result == "created" ? 201 : 200,
        fmt::format(R"({{"result":"{}","image":{{"name":"debian","kind":"disk","aliases":[],)"
                    R"("source":"store"}}}})",
                    result));
  }
};

TEST_F(Images, SendsAFileInPartsAndAddsIt) {
  const std::string content = std::string(kPart, 'a') + "the rest";
  const std::string path = WriteFile("debian.qcow2", content);
  Expect(Put(content, 0),
         {FakeTransport::Json(200, Received(0)), FakeTransport::Json(200, Received(kPart))});
  ExpectJson(Put(content, kPart), 200, Received(content.size(), true));
  ServeAdd("created");
  EXPECT_EQ(Run({"image", "add", path, "--alias", "latest"}), 0) << terminal_.err;
  const auto puts = Requests("PUT");
  ASSERT_EQ(puts.size(), 3u);
  EXPECT_EQ(puts[0].body, "");
  EXPECT_EQ(puts[1].body, std::string(kPart, 'a'));
  EXPECT_EQ(puts[2].body, "the rest");
  EXPECT_EQ(Requests("POST").at(0).body,
            fmt::format(R"({{"name":"debian","kind":"disk","disk":"{}","aliases":["latest"]}})",
                        ToHex(Sha256(content))));
  EXPECT_TRUE(Said("1.0 MiB sent"));
  EXPECT_TRUE(Said("image debian: added"));
  EXPECT_TRUE(Printed("store"));
}

TEST_F(Images, DoNotSendWhatIsThereAlready) {
  const std::string content = "a disk";
  const std::string path = WriteFile("debian.qcow2", content);
  ExpectJson(Put(content, 0), 200, Received(content.size(), true));
  ServeAdd("existing");
  EXPECT_EQ(Run({"image", "add", path}), 0) << terminal_.err;
  EXPECT_EQ(Requests("PUT").size(), 1u);
  EXPECT_TRUE(Said("in the store already"));
  EXPECT_TRUE(Said("image debian: already there"));
}

// The server was restarted and forgot what was sent; one part's answer was lost.
TEST_F(Images, BeginAgainWhereTheServerSays) {
  const std::string content = std::string(kPart, 'a') + "b";
  const std::string path = WriteFile("debian.qcow2", content);
  Expect(Put(content, 0),
         {FakeTransport::Json(200, Received(0)), FakeTransport::Lost(),
          FakeTransport::Json(200, Received(kPart)), FakeTransport::Json(200, Received(kPart))});
  Expect(Put(content, kPart), {FakeTransport::Json(200, Received(0)),
                               FakeTransport::Json(200, Received(content.size(), true))});
  ServeAdd("created");
  EXPECT_EQ(Run({"image", "add", path}), 0) << terminal_.err;
  EXPECT_EQ(Requests("PUT").back().body, "b");
}

TEST_F(Images, TellWhatTheServerThinksOfAFile) {
  const std::string content = "a text";
  const std::string path = WriteFile("notes.txt", content);
  ExpectJson(Put(content, 0), 200, Received(content.size(), true));
  ExpectJson("POST /v1/images", 400,
             R"({"code":"image_invalid","detail":"it is a web page","retryable":false})");
  EXPECT_EQ(Run({"image", "add", path}), 2);
  EXPECT_TRUE(Said("it is a web page"));
  EXPECT_TRUE(Said("docs/images.md"));
}

TEST_F(Images, ShowProgressOnATerminalAndLeaveNothingBehindAtCtrlC) {
  terminal_.traits_now.err_is_terminal = terminal_.traits_now.has_cursor = true;
  const std::string content(3 * kPart, 'x');
  const std::string path = WriteFile("debian.raw", content);
  Expect(Put(content, 0), {FakeTransport::Json(200, Received(0))});
  Expect("DELETE " + FilePath(content), {client::HttpResponse{204, {}, ""}});
  on_request_ = [this](const client::HttpRequest& request) {
    clock_.Advance(Milliseconds(1'000));
    if (!request.body.empty()) stop_.request_stop();
    if (request.method == "DELETE") stop_ = std::stop_source();
  };
  EXPECT_EQ(Run({"image", "add", path}), 130);
  EXPECT_TRUE(Said("0.0 of 3.0 MiB sent (0 %)")) << terminal_.err;
  EXPECT_EQ(Requests("DELETE").size(), 1u);
  EXPECT_TRUE(Requests("POST").empty());
}

TEST_F(Images, RefuseSenselessCommandsBeforeAnythingIsSent) {
  EXPECT_EQ(Run({"image", "add"}), 2);
  EXPECT_EQ(Run({"image", "add", "x", "--initrd", "y"}), 2);
  EXPECT_EQ(Run({"image", "add", "x.qcow2", "--name", "no name"}), 2);
  EXPECT_EQ(Run({"image"}), 2);
  EXPECT_EQ(Run({"image", "add", home_.File("none.qcow2")}), 1);
  EXPECT_EQ(Run({"image", "add", WriteFile("empty.raw", "")}), 1);
  EXPECT_TRUE(Said("is empty"));
  EXPECT_TRUE(transport_.requests.empty());
}

TEST_F(Images, AreRemovedByName) {
  Expect("DELETE /v1/images/debian", {client::HttpResponse{204, {}, ""}});
  ExpectJson("DELETE /v1/images/other", 409,
             R"({"code":"image_in_use","detail":"2 VMs stand on 'other'","retryable":false})");
  EXPECT_EQ(Run({"image", "remove", "other", "debian"}), 1);
  EXPECT_TRUE(Said("2 VMs stand on 'other'"));
  EXPECT_TRUE(Said("image debian: removed"));
}

}  // namespace
}  // namespace vmonce::app
