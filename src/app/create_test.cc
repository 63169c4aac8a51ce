#include <sys/stat.h>

#include "app/fake_world.h"
#include "base/json.h"

namespace vmonce::app {
namespace {

using client::FakeTransport;

class Create : public FakeWorld {
 protected:
  static Answer Accepted() {
    return FakeTransport::Json(
        202, CreatedJson(OperationJson("accepted", "forward", "place"), VmJson("pending")));
  }
  static Answer Step(std::string_view step) {
    return FakeTransport::Json(200, OperationJson("running", "forward", step));
  }
  static Answer Succeeded() {
    return FakeTransport::Json(200, OperationJson("succeeded", "done", "publish"));
  }

  void ServeWholeCreate() {
    Expect("POST /v1/vms", {Accepted()});
    Expect("GET /v1/operations/op-1", {Step("disk"), Step("start"), Succeeded()});
    ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready"));
  }

  std::string SentKey(std::size_t post) const {
    return client::SentHeader(Requests("POST").at(post), "Idempotency-Key");
  }

  const std::vector<std::string> kCommand = {"create", "--name", "web", "--image", "tiny"};
  std::vector<std::string> With(std::vector<std::string> more) const {
    std::vector<std::string> all = kCommand;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(Create, ShowsEveryStepAndHowToGoOn) {
  ServeWholeCreate();
  EXPECT_EQ(Run(kCommand), 0) << terminal_.err;
  const std::string& said = terminal_.err;
  EXPECT_TRUE(said.starts_with("key vmonce-")) << said;
  std::size_t from = 0;
  for (const auto* step :
       {"] place\n", "] disk\n", "] seed\n", "] define\n", "] start\n", "] ready\n",
        "web (vm-1) is ready after 0.8 s", "vmonce console web", "returns the same VM"}) {
    from = said.find(step, from);
    ASSERT_NE(from, std::string::npos) << step << " in " << said;
  }
  EXPECT_TRUE(Printed("NAME")) << terminal_.out;
  EXPECT_TRUE(Printed("web   ready")) << terminal_.out;
  EXPECT_EQ(Requests("POST")[0].body, R"({"image":"tiny","name":"web"})");
}

TEST_F(Create, RedrawsOneLineOnATerminal) {
  terminal_.traits_now.has_cursor = true;
  ServeWholeCreate();
  EXPECT_EQ(Run(kCommand), 0);
  EXPECT_TRUE(
      Said("\r\033[K  place 0.2 s -> disk 0.5 s -> seed 0.5 s -> define 0.5 s -> start ... 0.5 s"))
      << terminal_.err;
  EXPECT_FALSE(Said("] place")) << terminal_.err;
}

// report 1
TEST_F(Create, KeepsItsIntentBeforeTheFirstSendAndRemovesItAtTheEnd) {
  ServeWholeCreate();
  int posts = 0;
  on_request_ = [&](const client::HttpRequest& request) {
    if (request.method != "POST") return;
    ++posts;
    ASSERT_EQ(IntentFiles().size(), 1u);
    struct stat status{};
    ASSERT_EQ(stat(IntentFiles()[0].c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  };
  EXPECT_EQ(Run(kCommand), 0);
  EXPECT_EQ(posts, 1);
  EXPECT_TRUE(IntentFiles().empty());
}

// report 1
TEST_F(Create, SendsTheSameKeyUntilAnAnswerArrives) {
  ServeWholeCreate();
  Expect("POST /v1/vms", {FakeTransport::Lost(), FakeTransport::Refused(), Accepted()});
  EXPECT_EQ(Run(kCommand), 0);
  ASSERT_EQ(Requests("POST").size(), 3u);
  EXPECT_EQ(SentKey(0), SentKey(2));
  EXPECT_TRUE(Said("server not reached: connection refused; trying again"));
}

TEST_F(Create, SaysHowToResumeWhenTheServerNeverAnswers) {
  Expect("POST /v1/vms", {FakeTransport::Lost()});
  EXPECT_EQ(Run(With({"--timeout", "5s"})), 3);
  EXPECT_TRUE(Said("it is not known whether the request arrived")) << terminal_.err;
  EXPECT_TRUE(Said("vmonce create --resume vmonce-"));
  EXPECT_EQ(IntentFiles().size(), 1u);
}

// report 2
TEST_F(Create, RepeatedAfterALostAnswerReusesTheKeyAndSaysSo) {
  Expect("POST /v1/vms", {FakeTransport::Lost()});
  EXPECT_EQ(Run(With({"--timeout", "5s"})), 3);
  const std::size_t before = Requests("POST").size();
  ServeWholeCreate();
  // Another spelling of the same request.
  EXPECT_EQ(Run({"create", "--image", "tiny", "--name", "web"}), 0);
  EXPECT_TRUE(Said("going on with the unfinished create")) << terminal_.err;
  EXPECT_EQ(SentKey(0), SentKey(before));
  EXPECT_TRUE(IntentFiles().empty());
}

TEST_F(Create, AnotherRequestGetsAnotherKey) {
  Expect("POST /v1/vms", {FakeTransport::Lost()});
  EXPECT_EQ(Run(With({"--timeout", "1s"})), 3);
  const std::size_t before = Requests("POST").size();
  EXPECT_EQ(Run(With({"--cpus", "2", "--timeout", "1s"})), 3);
  EXPECT_NE(SentKey(0), SentKey(before));
  EXPECT_EQ(IntentFiles().size(), 2u);
}

TEST_F(Create, AFinishedCommandRepeatedMakesANewKey) {
  ServeWholeCreate();
  EXPECT_EQ(Run(kCommand), 0);
  ServeWholeCreate();
  EXPECT_EQ(Run(kCommand), 0);
  EXPECT_NE(SentKey(0), SentKey(1));
}

TEST_F(Create, ResumeFinishesTheSameIntent) {
  Expect("POST /v1/vms", {FakeTransport::Lost()});
  EXPECT_EQ(Run(With({"--timeout", "1s"})), 3);
  const std::size_t before = Requests("POST").size();
  ServeWholeCreate();
  EXPECT_EQ(Run({"create", "--resume"}), 0) << terminal_.err;
  EXPECT_EQ(SentKey(0), SentKey(before));
  EXPECT_EQ(Requests("POST")[before].body, Requests("POST")[0].body);
  EXPECT_TRUE(IntentFiles().empty());
  EXPECT_EQ(Run({"create", "--resume"}), 6);
}

TEST_F(Create, ResumeListsSeveralAndTakesTheKeyOfOne) {
  Expect("POST /v1/vms", {FakeTransport::Lost()});
  EXPECT_EQ(Run(With({"--key", "k-1", "--timeout", "1s"})), 3);
  EXPECT_EQ(Run(With({"--key", "k-2", "--timeout", "1s"})), 3);
  EXPECT_EQ(Run({"create", "--resume"}), 2);
  EXPECT_TRUE(Said("create --resume k-1") && Said("create --resume k-2")) << terminal_.err;
  ServeWholeCreate();
  EXPECT_EQ(Run({"create", "--resume", "k-2"}), 0);
  EXPECT_EQ(client::SentHeader(Requests("POST").back(), "Idempotency-Key"), "\"k-2\"");
  EXPECT_EQ(IntentFiles().size(), 1u);
}

TEST_F(Create, SendsNothingToAServerThatWasNotNamed) {
  Expect("POST /v1/vms", {FakeTransport::Lost()});
  EXPECT_EQ(Run(With({"--key", "k-1", "--timeout", "1s"})), 3);
  const std::size_t before = transport_.requests.size();
  EXPECT_EQ(Run({"--url", "http://127.0.0.1:9999", "create", "--resume", "k-1"}), 2);
  EXPECT_TRUE(Said("vmonce --url http://127.0.0.1:8080 create --resume k-1")) << terminal_.err;
  EXPECT_EQ(transport_.requests.size(), before);
}

TEST_F(Create, TellsThatTheKeyStandsForAnotherRequest) {
  ExpectJson("POST /v1/vms", 422,
             R"({"code":"idempotency_key_reused","detail":"the key was used for another request",)"
             R"("differing":["/cpus"],"operation":"/v1/operations/op-9","retryable":false})");
  EXPECT_EQ(Run(With({"--key", "k-1"})), 5);
  EXPECT_TRUE(Said("differs from the first request at: /cpus")) << terminal_.err;
  EXPECT_TRUE(Said("operation: op-9\n")) << terminal_.err;
  EXPECT_TRUE(Said("code: idempotency_key_reused"));
  EXPECT_TRUE(IntentFiles().empty());
}

TEST_F(Create, DoesNotOverwriteAnUnfinishedIntentOfItsKey) {
  Expect("POST /v1/vms", {FakeTransport::Lost()});
  EXPECT_EQ(Run(With({"--key", "k-1", "--timeout", "1s"})), 3);
  const std::size_t before = transport_.requests.size();
  EXPECT_EQ(Run(With({"--key", "k-1", "--cpus", "2"})), 5);
  EXPECT_TRUE(Said("differs at: /cpus")) << terminal_.err;
  EXPECT_EQ(transport_.requests.size(), before);
  EXPECT_EQ(IntentFiles().size(), 1u);
}

TEST_F(Create, TimeoutEndsTheWaitingAndNotTheOperation) {
  Expect("POST /v1/vms", {Accepted()});
  Expect("GET /v1/operations/op-1", {Step("start")});
  EXPECT_EQ(Run(With({"--timeout", "20s"})), 4);
  EXPECT_TRUE(Said("still running")) << terminal_.err;
  EXPECT_TRUE(Said("resume: vmonce create --resume vmonce-"));
  EXPECT_EQ(IntentFiles().size(), 1u);
  EXPECT_LE(clock_.Elapsed(), Milliseconds(20'000));
}

TEST_F(Create, CtrlCDetachesAndSaysHowToResume) {
  Expect("POST /v1/vms", {Accepted()});
  Expect("GET /v1/operations/op-1", {Step("start")});
  threads_.on_sleep = [this](Milliseconds) { stop_.request_stop(); };
  EXPECT_EQ(Run(kCommand), 130);
  EXPECT_TRUE(Said("detached: the create goes on")) << terminal_.err;
  EXPECT_TRUE(Said("resume: vmonce create --resume vmonce-"));
  EXPECT_EQ(IntentFiles().size(), 1u);
}

TEST_F(Create, CtrlCBeforeAnAnswerKeepsTheIntent) {
  Expect("POST /v1/vms", {FakeTransport::Refused()});
  on_request_ = [this](const client::HttpRequest&) { stop_.request_stop(); };
  EXPECT_EQ(Run(kCommand), 130);
  EXPECT_TRUE(Said("create --resume")) << terminal_.err;
  EXPECT_EQ(IntentFiles().size(), 1u);
}

TEST_F(Create, GoesOnFollowingWhenTheServerIsRestarted) {
  ServeWholeCreate();
  Expect("GET /v1/operations/op-1", {Step("disk"), FakeTransport::Refused(), FakeTransport::Lost(),
                                     FakeTransport::Refused(), Step("start"), Succeeded()});
  EXPECT_EQ(Run(kCommand), 0) << terminal_.err;
  EXPECT_EQ(Requests("POST").size(), 1u);
}

TEST_F(Create, SaysThatTheCreateGoesOnWhenTheServerStaysAway) {
  Expect("POST /v1/vms", {Accepted()});
  Expect("GET /v1/operations/op-1", {FakeTransport::Refused()});
  EXPECT_EQ(Run(With({"--timeout", "5s"})), 3);
  EXPECT_TRUE(Said("was accepted and goes on")) << terminal_.err;
  EXPECT_EQ(IntentFiles().size(), 1u);
}

class FailedCreate : public Create {
 protected:
  void ServeFailure(std::string_view failure) {
    Expect("POST /v1/vms", {Accepted()});
    ExpectJson(
        "GET /v1/operations/op-1", 200,
        OperationJson("failed", "failed", "start", fmt::format(R"(,"failure":{})", failure)));
    ExpectJson("GET /v1/vms/vm-1", 200, VmJson("failed"));
    ExpectJson("GET /v1/operations/op-1/timeline", 200,
               R"({"items":[{"at":"t","event":"step_failed","detail":"qemu ended"}]})");
    Expect("GET /v1/vms/vm-1/console?offset=0",
           {client::HttpResponse{200, {{"vmonce-console-next", "12"}}, "Kernel\r\n\033panic\n"}});
    Expect("GET /v1/vms/vm-1/console?offset=12",
           {client::HttpResponse{200, {{"vmonce-console-next", "12"}}, ""}});
  }
};

TEST_F(FailedCreate, TellsCauseRepairOperationCodeAndConsole) {
  ServeFailure(R"({"code":"hypervisor_refused","detail":"no such CPU","retryable":false})");
  EXPECT_EQ(Run(kCommand), 1);
  for (const auto* text : {"create failed: no such CPU", "repair: ", "operation: op-1",
                           "code: hypervisor_refused", "qemu ended", "Kernel", "?panic"}) {
    EXPECT_TRUE(Said(text)) << text << " in " << terminal_.err;
  }
  EXPECT_TRUE(IntentFiles().empty());
}

// report 40
TEST_F(FailedCreate, KeepsTheKeyWhenTheCauseMayPass) {
  ServeFailure(R"({"code":"no_capacity","detail":"no host has room","retryable":true})");
  EXPECT_EQ(Run(kCommand), 1);
  EXPECT_TRUE(Said("try again under the same key: vmonce create --resume vmonce-"))
      << terminal_.err;
  ServeWholeCreate();
  EXPECT_EQ(Run(kCommand), 0);
  EXPECT_EQ(SentKey(0), SentKey(1));
}

// report 46
TEST_F(Create, NeverCallsADeletedVmASuccess) {
  ExpectJson(
      "POST /v1/vms", 200,
      CreatedJson(OperationJson("succeeded", "done", "publish"), VmJson("deleted"), "existing"));
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("deleted"));
  EXPECT_EQ(Run(With({"--key", "k-1"})), 1);
  EXPECT_TRUE(Said("a key never makes a second VM")) << terminal_.err;
}

TEST_F(Create, ARepeatedKeyShowsTheVmThatIsThere) {
  ExpectJson(
      "POST /v1/vms", 200,
      CreatedJson(OperationJson("succeeded", "done", "publish"), VmJson("ready"), "existing"));
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready"));
  EXPECT_EQ(Run(With({"--key", "\"k-1\"", "--json"})), 0);
  EXPECT_TRUE(Said("exists already under this key")) << terminal_.err;
  EXPECT_EQ(std::ranges::count(terminal_.out, '\n'), 1);
  const auto document = ParseStrictJson(terminal_.out);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->at("result"), "existing");
  EXPECT_EQ(document->at("idempotency_key"), "k-1");
  EXPECT_EQ(document->at("vm").at("id"), "vm-1");
}

TEST_F(Create, AReplayTellsNoStepsAsIfTheyRanNow) {
  Expect("POST /v1/vms",
         {FakeTransport::Json(200,
                              CreatedJson(OperationJson("succeeded", "done", "publish"),
                                          VmJson("ready"), "existing"),
                              {{"idempotent-replayed", "true"}})});
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready"));
  EXPECT_EQ(Run(With({"--key", "k-1"})), 0);
  EXPECT_TRUE(Said("accepted before as operation op-1")) << terminal_.err;
  EXPECT_FALSE(Said("] place") || Said("] ready")) << terminal_.err;
}

TEST_F(Create, AReplayOfARunningCreateTellsWhatWasDoneBefore) {
  Expect("POST /v1/vms",
         {FakeTransport::Json(202,
                              CreatedJson(OperationJson("running", "forward", "seed"),
                                          VmJson("creating"), "existing"),
                              {{"idempotent-replayed", "true"}})});
  Expect("GET /v1/operations/op-1", {Step("define"), Succeeded()});
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready"));
  EXPECT_EQ(Run(With({"--key", "k-1"})), 0);
  EXPECT_TRUE(Said("done before: place, disk")) << terminal_.err;
  EXPECT_FALSE(Said("] disk\n")) << terminal_.err;
  EXPECT_TRUE(Said("] seed\n") && Said("] ready\n")) << terminal_.err;
}

TEST_F(Create, ARefusedCreateDoesNotSpeakOfTheSameVm) {
  ExpectJson("POST /v1/vms", 409, R"({"code":"name_taken","detail":"web is there"})");
  EXPECT_EQ(Run(With({"--key", "k-1"})), 1);
  EXPECT_FALSE(Said("returns the same VM")) << terminal_.err;
  EXPECT_TRUE(terminal_.err.starts_with("key k-1\n")) << terminal_.err;
}

TEST_F(Create, WaitAddressEndsWhenTheGuestHasOne) {
  ServeWholeCreate();
  const auto vm = [](std::string_view addresses) {
    return FakeTransport::Json(
        200, fmt::format(R"({{"id":"vm-1","name":"web","state":"ready","network":"lan",)"
                         R"("addresses":[{}]}})",
                         addresses));
  };
  Expect("GET /v1/vms/vm-1", {vm(""), vm(""), vm("\"10.0.0.7\"")});
  EXPECT_EQ(Run(With({"--wait", "address"})), 0) << terminal_.err;
  EXPECT_TRUE(Said("web has an address: 10.0.0.7")) << terminal_.err;
  EXPECT_TRUE(Said("  address: 10.0.0.7")) << terminal_.err;
  ServeWholeCreate();
  Expect("GET /v1/vms/vm-1", {vm("")});
  EXPECT_EQ(Run(With({"--wait", "address", "--timeout", "10s"})), 4) << terminal_.err;
}

TEST_F(Create, WaitAcceptedReturnsAtOnce) {
  Expect("POST /v1/vms", {Accepted()});
  EXPECT_EQ(Run(With({"--wait", "accepted", "-o", "name"})), 0);
  EXPECT_EQ(terminal_.out, "web\n");
  EXPECT_EQ(transport_.requests.size(), 1u);
  EXPECT_EQ(client::SentHeader(transport_.requests[0], "Prefer"), "");
}

TEST_F(Create, WaitStartedReturnsWhenOnlyPublishingIsLeft) {
  Expect("POST /v1/vms", {Accepted()});
  Expect("GET /v1/operations/op-1", {Step("start"), Step("publish")});
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("creating"));
  EXPECT_EQ(Run(With({"--wait", "started"})), 0);
}

TEST_F(Create, DryRunKeepsNothing) {
  ExpectJson("POST /v1/vms?dry_run=true", 200, R"({"would":"create"})");
  EXPECT_EQ(Run(With({"--dry-run", "--json"})), 0);
  EXPECT_EQ(terminal_.out, "{\"would\":\"create\"}\n");
  EXPECT_TRUE(IntentFiles().empty());
}

TEST_F(Create, DryRunEndsAsTheCreateWould) {
  ExpectJson("POST /v1/vms?dry_run=true", 200,
             R"({"would":"mismatch","problem":{"code":"idempotency_key_reused","status":422}})");
  EXPECT_EQ(Run(With({"--dry-run", "--key", "k-1"})), 5);
}

TEST_F(Create, SendsNothingWhenTheKeyCannotBeKept) {
  environment_.erase("XDG_STATE_HOME");
  EXPECT_EQ(Run(kCommand), 1);
  EXPECT_TRUE(Said("so nothing was sent")) << terminal_.err;
  EXPECT_TRUE(transport_.requests.empty());
  ServeWholeCreate();
  EXPECT_EQ(Run(With({"--key", "mine"})), 0);
  EXPECT_TRUE(Said("warning:"));
}

TEST_F(Create, FollowsABatchAsCounts) {
  const auto operation = [](std::string_view state, std::string_view first) {
    return fmt::format(R"({{"id":"op-1","kind":"create","state":"{}","items":[)"
                       R"({{"phase":"{}","step_name":"disk"}},{{"phase":"done"}}]}})",
                       state, first);
  };
  ExpectJson("POST /v1/vms", 202, CreatedJson(operation("running", "forward"), VmJson("pending")));
  ExpectJson("GET /v1/operations/op-1", 200, operation("succeeded", "done"));
  ExpectJson("GET /v1/vms/vm-1", 200, VmJson("ready"));
  EXPECT_EQ(Run(With({"--count", "2"})), 0);
  EXPECT_TRUE(Said("2 VMs: 1 disk, 1 ready")) << terminal_.err;
  EXPECT_TRUE(Said("2 VMs: 2 ready")) << terminal_.err;
}

TEST_F(Create, RefusesMistakesBeforeAnythingIsSent) {
  EXPECT_EQ(Run({"create", "--name", "x"}), 2);
  EXPECT_EQ(Run(With({"--wait", "forever"})), 2);
  EXPECT_EQ(Run(With({"--memory", "lots"})), 2);
  EXPECT_EQ(Run(With({"--key", ""})), 2);
  EXPECT_EQ(Run(With({"--ssh-key", "/nonexistent"})), 2);
  EXPECT_TRUE(transport_.requests.empty());
  EXPECT_TRUE(IntentFiles().empty());
}

}  // namespace
}  // namespace vmonce::app
