#include "app/fake_world.h"

namespace vmonce::app {
namespace {

using client::FakeTransport;

class ConsoleCommand : public FakeWorld {
 protected:
  ConsoleCommand() {
    ExpectJson("GET /v1/vms?name=web&limit=100", 200,
               fmt::format(R"({{"items":[{}],"next":null}})", VmJson("ready")));
    ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready"));
  }

  static Answer Part(std::string bytes, std::int64_t next) {
    return client::HttpResponse{
        200,
        {{"content-type", "text/plain"}, {"vmonce-console-next", std::to_string(next)}},
        std::move(bytes)};
  }
  static Answer NotReady() {
    return FakeTransport::Json(404, R"({"code":"console_not_ready","detail":"","retryable":true})");
  }
  void At(std::int64_t offset, std::vector<Answer> answers) {
    Expect(fmt::format("GET /v1/vms/vm-1/console?offset={}", offset), std::move(answers));
  }
  // The person has seen enough after so many waits.
  void StopAfter(int sleeps) {
    threads_.on_sleep = [this, sleeps, seen = 0](Milliseconds) mutable {
      if (++seen >= sleeps) stop_.request_stop();
    };
  }
};

TEST_F(ConsoleCommand, FollowsUntilTheVmIsDeleted) {
  At(0, {NotReady(), Part("boot\n", 5)});
  At(5, {Part("", 5), Part("up\n", 8)});
  At(8, {Part("", 8), Part("", 8), NotReady(), NotReady()});
  Expect("GET /v1/vms/vm-1", {FakeTransport::Json(200, VmJson("creating")),
                              FakeTransport::Json(200, VmJson("deleting")),
                              FakeTransport::Json(200, VmJson("deleted"))});
  EXPECT_EQ(Run({"console", "web", "--follow"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, "boot\nup\n");
  EXPECT_TRUE(Said("VM web was deleted"));
}

TEST_F(ConsoleCommand, FollowsOverARestartOfTheServer) {
  At(0, {Part("one\n", 4)});
  std::vector<Answer> away(50, FakeTransport::Refused());
  away.push_back(FakeTransport::Json(
      503, R"({"code":"hypervisor_unavailable","detail":"","retryable":true})"));
  away.push_back(Part("two\n", 8));
  At(4, away);
  At(8, {Part("", 8)});
  on_request_ = [this](const client::HttpRequest&) {
    if (Printed("two")) stop_.request_stop();
  };
  EXPECT_EQ(Run({"console", "web", "-f"}), 130);
  EXPECT_EQ(terminal_.out, "one\ntwo\n");
  EXPECT_TRUE(Said("the server is away"));
  EXPECT_TRUE(Said("the server is back"));
  EXPECT_EQ(terminal_.err.find("away"), terminal_.err.rfind("away")) << "it is said once";
}

TEST_F(ConsoleCommand, GoesOnBehindWhatWasDroppedAndFromTheStartOfANewFile) {
  // The oldest output went: the first part begins later than was asked for.
  At(0, {Part("late\n", 5'005), Part("new file\n", 9)});
  At(5'005, {Part("", 3)});
  At(9, {Part("", 9)});
  StopAfter(1);
  EXPECT_EQ(Run({"console", "web", "--follow"}), 130);
  EXPECT_EQ(terminal_.out, "late\nnew file\n");
}

TEST_F(ConsoleCommand, BeginsWithTheLastLines) {
  At(-1'048'576, {Part("one\ntwo\nthree\n", 100)});
  At(100, {Part("", 100)});
  EXPECT_EQ(Run({"console", "web", "--tail", "2"}), 0);
  EXPECT_EQ(terminal_.out, "two\nthree\n");
  EXPECT_EQ(Run({"console", "web", "--tail", "0"}), 0);
  EXPECT_EQ(terminal_.out, "");
  EXPECT_EQ(Run({"console", "web", "--tail", "9"}), 0);
  EXPECT_EQ(terminal_.out, "one\ntwo\nthree\n");
  At(-1'048'576, {Part("no end", 100)});
  EXPECT_EQ(Run({"console", "web", "--tail", "1"}), 0);
  EXPECT_EQ(terminal_.out, "no end");
  EXPECT_EQ(Run({"console", "web", "--tail", "-3"}), 2);
}

TEST_F(ConsoleCommand, DoesNotWaitWhereNothingCanCome) {
  At(0, {FakeTransport::Json(403, R"({"code":"forbidden","detail":"","retryable":false})")});
  EXPECT_EQ(Run({"console", "web", "--follow"}), 7);
  At(0, {NotReady()});
  EXPECT_EQ(Run({"console", "web"}), 6);
  EXPECT_EQ(Run({"console", "web", "--follow", "--timeout", "3s"}), 0);
}

}  // namespace
}  // namespace vmonce::app
