#include "app/command_line.h"

#include "app/fake_world.h"

namespace vmonce::app {
namespace {

using client::FakeTransport;

constexpr std::string_view kId = "01a22e32-d4b9-752d-a0a8-dca2014a5837";

class CommandLine : public FakeWorld {
 protected:
  const std::string kVmPath = "/v1/vms/" + std::string(kId);
  const std::string kOperation = "0b8a7c52-0000-7000-8000-000000000001";

  std::string Changed(std::string_view kind) const {
    return fmt::format(
        R"({{"operation":{{"id":"op-2","kind":"{}","state":"accepted","items":[]}}}})", kind);
  }
  void ServeVmByName(std::string_view state = "ready") {
    ExpectJson("GET /v1/vms?name=web&limit=100", 200,
               fmt::format(R"({{"items":[{}],"next":null}})", VmJson(state, "web", kId)));
  }
};

TEST_F(CommandLine, GivesEveryProblemItsExitCode) {
  struct Row {
    int status;
    const char* code;
    int exit;
  };
  const std::vector<Row> rows = {
      {400, "invalid_request", 2},
      {400, "hypervisor_refused", 1},
      {401, "unauthenticated", 7},
      {403, "quota_exceeded", 7},
      {404, "vm_not_found", 6},
      {409, "name_taken", 1},
      {410, "idempotency_key_expired", 1},
      {412, "precondition_failed", 1},
      {422, "idempotency_key_reused", 5},
      {429, "rate_limited", 3},
      {500, "internal", 1},
      {503, "ledger_unavailable", 3},
  };
  for (const Row& row : rows) {
    ExpectJson("GET " + kVmPath, row.status,
               fmt::format(R"({{"code":"{}","detail":"why","retryable":{}}})", row.code,
                           row.status >= 500));
    EXPECT_EQ(Run({"get", std::string(kId)}), row.exit) << row.code;
    EXPECT_TRUE(Said(fmt::format("code: {} (HTTP {})", row.code, row.status))) << terminal_.err;
    EXPECT_TRUE(Said("why"));
    EXPECT_EQ(terminal_.out, "");
  }
}

TEST_F(CommandLine, TellsThatTheServerIsNotReached) {
  Expect("GET /v1/images", {FakeTransport::Refused()});
  EXPECT_EQ(Run({"images"}), 3);
  EXPECT_TRUE(Said("repair: start it with `vmonce serve`")) << terminal_.err;
}

TEST_F(CommandLine, ARedirectIsNotFollowed) {
  Expect("GET /v1/images", {client::HttpResponse{302, {{"location", "http://x/"}}, ""}});
  EXPECT_EQ(Run({"images"}), 1);
  EXPECT_EQ(transport_.requests.size(), 1u);
}

TEST_F(CommandLine, RefusesMistakesAsUsage) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"frob"},
                                                    {"get"},
                                                    {"list", "--frob"},
                                                    {"list", "-o", "xml"},
                                                    {"list", "--timeout", "soon"},
                                                    {"list", "--url", "ftp://x"}}) {
    EXPECT_EQ(Run(arguments), 2);
    EXPECT_TRUE(Said("error: ")) << terminal_.err;
  }
  EXPECT_TRUE(transport_.requests.empty());
}

TEST_F(CommandLine, WithoutACommandShowsTheHelpAsUsage) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_TRUE(Said("Usage: vmonce")) << terminal_.err;
  EXPECT_EQ(terminal_.out, "");
}

TEST_F(CommandLine, HelpGoesToStdoutAndTellsTheExitCodes) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_TRUE(Printed("130  detached"));
  EXPECT_EQ(Run({"operations", "timeline", "--help"}), 0);
  EXPECT_TRUE(Printed("vmonce operations timeline")) << terminal_.out;
  EXPECT_EQ(terminal_.err, "");
}

TEST_F(CommandLine, TakesGlobalFlagsBeforeAndAfterTheCommand) {
  Expect("GET /v1/images",
         {FakeTransport::Json(200, R"({"items":[{"name":"tiny","kind":"kernel","aliases":[]}]})")});
  EXPECT_EQ(Run({"-o", "name", "images"}), 0);
  EXPECT_EQ(terminal_.out, "tiny\n");
  EXPECT_EQ(Run({"images", "-o", "name"}), 0);
  EXPECT_EQ(terminal_.out, "tiny\n");
  EXPECT_EQ(Run({"images", "--json"}), 0);
  EXPECT_EQ(std::ranges::count(terminal_.out, '\n'), 1);
}

TEST_F(CommandLine, ListsAllPages) {
  ExpectJson("GET /v1/vms?state=ready&label=a%3D1&limit=100", 200,
             fmt::format(R"({{"items":[{}],"next":"c1"}})", VmJson("ready")));
  ExpectJson("GET /v1/vms?state=ready&label=a%3D1&limit=100&cursor=c1", 200,
             fmt::format(R"({{"items":[{}],"next":null}})", VmJson("ready", "b", "vm-2")));
  EXPECT_EQ(Run({"list", "--state", "ready", "--label", "a=1", "-o", "name"}), 0);
  EXPECT_EQ(terminal_.out, "web\nb\n");
}

TEST_F(CommandLine, ListLeavesDeletedVmsOutUnlessAsked) {
  ExpectJson("GET /v1/vms?limit=100", 200,
             fmt::format(R"({{"items":[{},{}]}})", VmJson("ready"), VmJson("deleted", "old")));
  EXPECT_EQ(Run({"list", "-o", "name"}), 0);
  EXPECT_EQ(terminal_.out, "web\n");
  ExpectJson("GET /v1/vms?deleted=true&limit=100", 200,
             fmt::format(R"({{"items":[{},{}]}})", VmJson("ready"), VmJson("deleted", "old")));
  EXPECT_EQ(Run({"list", "--all", "-o", "name"}), 0);
  EXPECT_EQ(terminal_.out, "web\nold\n");
}

// report 125
TEST_F(CommandLine, AnAmbiguousNameIsAnErrorThatListsAll) {
  ExpectJson("GET /v1/vms?name=web&limit=100", 200,
             fmt::format(R"({{"items":[{},{}]}})", VmJson("ready", "web", "vm-1"),
                         VmJson("failed", "web", "vm-2")));
  EXPECT_EQ(Run({"delete", "web", "--yes"}), 1);
  EXPECT_TRUE(Said("vm-1") && Said("vm-2")) << terminal_.err;
  EXPECT_TRUE(Requests("DELETE").empty());
}

TEST_F(CommandLine, ANameStandsForTheLiveVmBesideDeletedOnes) {
  ExpectJson("GET /v1/vms?name=web&limit=100", 200,
             fmt::format(R"({{"items":[{},{}]}})", VmJson("deleted", "web", "vm-1"),
                         VmJson("ready", "web", "vm-2")));
  EXPECT_EQ(Run({"get", "web", "-o", "jsonl"}), 0);
  EXPECT_TRUE(Printed("vm-2"));
}

TEST_F(CommandLine, TellsThatANameStandsForNothing) {
  ExpectJson("GET /v1/vms?name=web&limit=100", 200, R"({"items":[]})");
  EXPECT_EQ(Run({"get", "web"}), 6);
}

TEST_F(CommandLine, DeleteNeedsYesWhereNobodyCanBeAsked) {
  ServeVmByName();
  EXPECT_EQ(Run({"delete", "web"}), 2);
  EXPECT_TRUE(Requests("DELETE").empty());
}

TEST_F(CommandLine, DeleteAsksOnATerminal) {
  terminal_.traits_now.in_is_terminal = true;
  ServeVmByName();
  terminal_.answer = "no";
  EXPECT_EQ(Run({"delete", "web"}), 1);
  EXPECT_TRUE(Requests("DELETE").empty());
  terminal_.answer = "yes";
  ExpectJson("DELETE " + kVmPath, 202, Changed("delete"));
  ExpectJson("GET /v1/operations/op-2", 200,
             R"({"id":"op-2","kind":"delete","state":"succeeded","items":[]})");
  EXPECT_EQ(Run({"delete", "web"}), 0) << terminal_.err;
  EXPECT_TRUE(Said("web is deleted")) << terminal_.err;
  EXPECT_NE(client::SentHeader(Requests("DELETE").at(0), "Idempotency-Key"), "");
}

TEST_F(CommandLine, PowerCommandsFollowTheirOperation) {
  ServeVmByName();
  ExpectJson("POST " + kVmPath + "/stop", 202, Changed("stop"));
  ExpectJson("GET /v1/operations/op-2", 200,
             R"({"id":"op-2","kind":"stop","state":"failed",)"
             R"("failure":{"code":"hypervisor_unavailable","detail":"gone","retryable":true}})");
  ExpectJson("GET /v1/operations/op-2/timeline", 200, R"({"items":[]})");
  EXPECT_EQ(Run({"stop", "web"}), 1);
  EXPECT_TRUE(Said("stop of web failed: gone")) << terminal_.err;
  EXPECT_EQ(Run({"stop", "web", "--wait", "accepted"}), 0);
  EXPECT_TRUE(Said("vmonce wait op-2")) << terminal_.err;
}

TEST_F(CommandLine, ALostAnswerOfAChangeIsSentAgainUnderItsKey) {
  ServeVmByName();
  Expect("POST " + kVmPath + "/reboot",
         {FakeTransport::Lost(), FakeTransport::Json(202, Changed("reboot"))});
  ExpectJson("GET /v1/operations/op-2", 200, R"({"id":"op-2","state":"succeeded"})");
  EXPECT_EQ(Run({"reboot", "web"}), 0);
  const auto posts = Requests("POST");
  ASSERT_EQ(posts.size(), 2u);
  EXPECT_EQ(client::SentHeader(posts[0], "Idempotency-Key"),
            client::SentHeader(posts[1], "Idempotency-Key"));
}

TEST_F(CommandLine, ConsoleReadsPartAfterPart) {
  ServeVmByName();
  const auto part = [this](int offset, std::string bytes, int next) {
    Expect(fmt::format("GET {}/console?offset={}", kVmPath, offset),
           {client::HttpResponse{
               200,
               {{"content-type", "text/plain"}, {"vmonce-console-next", std::to_string(next)}},
               std::move(bytes)}});
  };
  part(0, "one\n", 4);
  part(4, "two\n", 8);
  part(8, "", 8);
  EXPECT_EQ(Run({"console", "web"}), 0);
  EXPECT_EQ(terminal_.out, "one\ntwo\n");
  threads_.on_sleep = [this](Milliseconds) { stop_.request_stop(); };
  EXPECT_EQ(Run({"console", "web", "--follow"}), 130);
}

// report 47
TEST_F(CommandLine, ExplainTellsTheStoryOfAKeyWithoutPosting) {
  ExpectJson("GET /v1/operations?idempotency_key=my%20key&limit=100", 200,
             R"({"items":[{"id":"op-1","kind":"create","state":"succeeded","vms":["vm-1"],)"
             R"("idempotency_key_prefix":"my k…","accepted_at":"2026-11-30T20:00:00.000Z"}]})");
  ExpectJson("GET /v1/operations/op-1/timeline", 200,
             R"({"items":[{"at":"2026-11-30T20:00:01.500Z","replica":"r-1","attempt":1,"index":0,)"
             R"("event":"step_done","detail":"disk"},{"at":"2026-11-30T20:00:02.000Z",)"
             R"("event":"duplicate_served","index":-1}]})");
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready"));
  EXPECT_EQ(Run({"explain", "my key"}), 0) << terminal_.err;
  EXPECT_TRUE(Printed("It stands for the VM web (vm-1), which is ready now.")) << terminal_.out;
  EXPECT_TRUE(Printed("+1.5 s"));
  EXPECT_TRUE(Printed("1 duplicate request got this same operation"));
  ExpectJson("GET /v1/operations?idempotency_key=new&limit=100", 200, R"({"items":[]})");
  EXPECT_EQ(Run({"explain", "new"}), 6);
  EXPECT_TRUE(Requests("POST").empty());
}

TEST_F(CommandLine, OperationsAreListedShownAndCancelled) {
  const std::string one = R"({"id":"op-1","kind":"create","state":"running"})";
  ExpectJson("GET /v1/operations?state=running&limit=100", 200,
             fmt::format(R"({{"items":[{}]}})", one));
  EXPECT_EQ(Run({"operations", "--state", "running", "-o", "name"}), 0);
  EXPECT_EQ(terminal_.out, "op-1\n");
  ExpectJson("GET /v1/operations?limit=100", 200, fmt::format(R"({{"items":[{}]}})", one));
  EXPECT_EQ(Run({"operations", "list", "-o", "name"}), 0);
  ExpectJson("GET /v1/operations/op-1", 200, one);
  EXPECT_EQ(Run({"operations", "get", "op-1", "--json"}), 0);
  EXPECT_EQ(terminal_.out, one + "\n");
  ExpectJson("POST /v1/operations/op-1/cancel", 202, "{}");
  EXPECT_EQ(Run({"operations", "cancel", "op-1"}), 0);
}

TEST_F(CommandLine, WaitGoesOnWithWhatStillRuns) {
  ServeVmByName("creating");
  const std::string running = R"({"id":"op-1","kind":"create","state":"running"})";
  ExpectJson("GET /v1/operations?vm=" + std::string(kId) + "&limit=100", 200,
             fmt::format(R"({{"items":[{}]}})", running));
  Expect("GET /v1/operations/op-1",
         {FakeTransport::Json(200, running),
          FakeTransport::Json(200, R"({"id":"op-1","kind":"create","state":"succeeded"})")});
  ExpectJson("GET " + kVmPath, 200, VmJson("ready", "web", kId));
  EXPECT_EQ(Run({"wait", "web"}), 0) << terminal_.err;
  EXPECT_TRUE(Said("web is ready")) << terminal_.err;
}

TEST_F(CommandLine, WaitEndsWithFourWhenItsTimeIsOver) {
  ExpectJson("GET /v1/operations/" + kOperation, 200,
             R"({"id":"op-1","kind":"create","state":"running"})");
  EXPECT_EQ(Run({"wait", kOperation, "--timeout", "3s"}), 4);
}

TEST_F(CommandLine, ReconcilePrintsTheReport) {
  ExpectJson("POST /v1/reconcile", 200, R"({"hosts":[{"host":"local","domains":3,"ours":1}]})");
  EXPECT_EQ(Run({"reconcile"}), 0);
  EXPECT_TRUE(Printed("local  3        1")) << terminal_.out;
  ExpectJson("POST /v1/reconcile", 202, R"({"started":true})");
  EXPECT_EQ(Run({"reconcile"}), 0);
}

TEST_F(CommandLine, DeclaresHostsAndAsksBeforeOneIsGivenUp) {
  const auto host = [](std::string_view state, bool is_returning) {
    return fmt::format(R"({{"id":"a","state":"{}","returning":{}}})", state, is_returning);
  };
  ExpectJson("POST /v1/hosts/a/drain", 200, host("draining", false));
  EXPECT_EQ(Run({"host", "drain", "a"}), 0) << terminal_.err;
  EXPECT_TRUE(Said("gets nothing new")) << terminal_.err;

  EXPECT_EQ(Run({"host", "dead", "a"}), 2) << "nobody can be asked";
  terminal_.traits_now.in_is_terminal = true;
  terminal_.answer = "no";
  EXPECT_EQ(Run({"host", "dead", "a"}), 1);
  EXPECT_TRUE(Said("Switch it off first")) << terminal_.err;
  ExpectJson("POST /v1/hosts/a/dead", 200, host("dead", true));
  terminal_.answer = "yes";
  EXPECT_EQ(Run({"host", "dead", "a"}), 0) << terminal_.err;

  ExpectJson("POST /v1/hosts/a/activate", 200, host("active", true));
  EXPECT_EQ(Run({"host", "activate", "a"}), 0) << terminal_.err;
  EXPECT_TRUE(Said("once a sweep has stopped")) << terminal_.err;
  ExpectJson("POST /v1/hosts/x/drain", 404,
             R"({"code":"host_not_found","detail":"no host x","retryable":false})");
  EXPECT_EQ(Run({"host", "drain", "x"}), 6);
  ExpectJson("GET /v1/hosts", 200, R"({"items":[{"id":"a","state":"active"}]})");
  EXPECT_EQ(Run({"host", "list"}), 0);
  EXPECT_EQ(Run({"host"}), 2);
}

TEST_F(CommandLine, ReleasesAKeyAndSaysWhenNothingHasIt) {
  ExpectJson("POST /v1/keys/release", 200, R"({"was_known":true,"vms":["v-1"]})");
  EXPECT_EQ(Run({"key", "release", "k 1"}), 0) << terminal_.err;
  EXPECT_TRUE(Said("the key is released")) << terminal_.err;
  ExpectJson("POST /v1/keys/release", 200, R"({"was_known":false,"vms":[]})");
  EXPECT_EQ(Run({"key", "release", "k"}), 0);
  EXPECT_TRUE(Said("nothing has this key")) << terminal_.err;
  ExpectJson("POST /v1/keys/release", 409,
             R"({"code":"key_in_use","detail":"a VM is not deleted","retryable":false})");
  EXPECT_NE(Run({"key", "release", "k"}), 0);
  EXPECT_EQ(Run({"key"}), 2);
}

TEST_F(CommandLine, UsesTheServerOfTheEnvironment) {
  environment_["VMONCE_URL"] = "http://127.0.0.1:8080/";
  ExpectJson("GET /v1/hosts", 200, R"({"items":[{"id":"local","state":"up"}]})");
  EXPECT_EQ(Run({"hosts"}), 0);
  environment_["VMONCE_URL"] = "nonsense";
  EXPECT_EQ(Run({"hosts"}), 2);
  EXPECT_TRUE(Said("VMONCE_URL")) << terminal_.err;
}

TEST(Timeout, IsReadWithItsUnitOrInSeconds) {
  EXPECT_EQ(ParseTimeout("500ms"), Milliseconds(500));
  EXPECT_EQ(ParseTimeout("30"), Milliseconds(30'000));
  EXPECT_EQ(ParseTimeout("5m"), Milliseconds(300'000));
  EXPECT_EQ(ParseTimeout("2h"), Milliseconds(7'200'000));
  for (const auto* bad : {"", "s", "-1s", "1.5s", "99999999h", "10000d"}) {
    EXPECT_EQ(ParseTimeout(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace vmonce::app
