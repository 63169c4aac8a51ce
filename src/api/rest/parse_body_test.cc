#include "api/rest/parse_body.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/system.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
using service::ChangeRequest;

constexpr std::string_view kId = "01890a5d-ac96-774b-bcce-b302099a8057";
constexpr std::string_view kSshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== me@here";

class ParseBodyTest : public testing::Test {
 protected:
  static http::Request Post(std::string body) {
    http::Request request;
    request.principal =
        std::make_shared<const service::Caller>(service::Caller{model::ProjectId{"default"}});
    request.method = "POST";
    request.host = "localhost";
    request.body = std::move(body);
    request.headers.Add("Content-Type", "application/json");
    request.headers.Add("Idempotency-Key", "k-1");
    return request;
  }

  static http::Request OnVm(std::string body, std::string_view id = kId) {
    http::Request request = Post(std::move(body));
    request.path_params = {{"id", std::string(id)}};
    return request;
  }

  Parsed<ParsedCreate> Create(const http::Request& request) {
    return ParseCreate(request, sealer_);
  }

  // The pointers of all problems, and the code when it is not invalid_request.
  std::vector<std::string> Wrong(const std::string& body) {
    const Parsed<ParsedCreate> parsed = Create(Post(body));
    if (parsed) return {"accepted"};
    if (parsed.error().code != "invalid_request") return {parsed.error().code};
    std::vector<std::string> pointers;
    for (const model::FieldProblem& field : parsed.error().fields) {
      pointers.push_back(field.pointer);
    }
    return pointers;
  }

  std::unique_ptr<Random> random_ = NewSystemRandom();
  Sealer sealer_{std::string(32, 'k'), *random_};
};

using Pointers = std::vector<std::string>;

TEST_F(ParseBodyTest, ReadsEveryMemberOfACreate) {
  const json::object body = {{"name", "web"},
                             {"image", "debian"},
                             {"count", 3},
                             {"cpus", 2},
                             {"memory_mib", 1024},
                             {"disk_gib", 10},
                             {"hostname", "Web.example"},
                             {"ssh_keys", json::array{kSshKey}},
                             {"labels", json::object{{"tier", "front"}, {"a/b.c_d-e", ""}}},
                             {"network", "user"}};
  json::object with_host = body;
  with_host["hostname"] = "Host";
  const Parsed<ParsedCreate> parsed = Create(Post(json::serialize(with_host)));
  ASSERT_TRUE(parsed) << parsed.error().detail;
  const service::CreateRequest& request = parsed->request;
  model::CreateIntent intent;
  intent.name = "web";
  intent.image = "debian";
  intent.count = 3;
  intent.cpus = 2;
  intent.memory_mib = 1024;
  intent.disk_gib = 10;
  intent.hostname = "Host";
  intent.ssh_keys = {std::string(kSshKey)};
  intent.labels = {{"tier", "front"}, {"a/b.c_d-e", ""}};
  EXPECT_EQ(request.intent, intent);
  EXPECT_FALSE(parsed->is_dry_run);
  EXPECT_EQ(request.asked.key->value, "k-1");
  EXPECT_EQ(request.asked.face, "rest");
  EXPECT_EQ(request.asked.caller.project.value, "default");
  EXPECT_EQ(request.asked.request.method, "POST");
  EXPECT_EQ(request.asked.request.route, "/v1/vms");
  EXPECT_TRUE(request.asked.request.query.empty());
}

TEST_F(ParseBodyTest, ReadsForwardsAndNetworks) {
  const Parsed<ParsedCreate> parsed =
      Create(Post(R"({"image":"i","forward":[{"guest_port":22},)"
                  R"({"guest_port":53,"protocol":"udp","host_port":20053}]})"));
  ASSERT_TRUE(parsed);
  const std::vector<model::Forward> expected = {
      {.guest_port = 22},
      {.guest_port = 53, .protocol = model::Protocol::kUdp, .host_port = 20'053}};
  EXPECT_EQ(parsed->request.intent.forwards, expected);
  EXPECT_EQ(parsed->request.intent.network, "user");
  for (const char* network : {"default", "bridge:br0", "user"}) {
    const Parsed<ParsedCreate> other =
        Create(Post(fmt::format(R"({{"image":"i","network":"{}"}})", network)));
    ASSERT_TRUE(other) << network;
    EXPECT_EQ(other->request.intent.network, network);
  }
}

TEST_F(ParseBodyTest, OnlyTheImageIsRequired) {
  const Parsed<ParsedCreate> parsed = Create(Post(R"({"image":"tiny"})"));
  ASSERT_TRUE(parsed);
  model::CreateIntent intent;
  intent.image = "tiny";
  EXPECT_EQ(parsed->request.intent, intent);
}

TEST_F(ParseBodyTest, UserDataIsKeptAsItsMacAlone) {
  for (const std::string body : {R"({"image":"i","user_data":"secret"})",
                                 R"({"image":"i","user_data_base64":"c2VjcmV0"})"}) {
    const Parsed<ParsedCreate> parsed = Create(Post(body));
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(parsed->request.user_data, "secret");
    EXPECT_EQ(parsed->request.intent.user_data_mac, sealer_.Mac("secret"));
    const std::string kept = model::CanonicalRequest(parsed->request.asked.redacted);
    EXPECT_EQ(kept.find("secret\""), std::string::npos) << kept;
    EXPECT_EQ(kept.find("c2VjcmV0"), std::string::npos) << kept;
    EXPECT_NE(kept.find("{\"hmac\":\"" + ToHex(sealer_.Mac("secret")) + "\"}"), std::string::npos);
    // The fingerprint is of what was sent.
    EXPECT_EQ(parsed->request.asked.request.body, *ParseStrictJson(body));
  }
  // Both spellings are one intent.
  EXPECT_EQ(Create(Post(R"({"image":"i","user_data":"secret"})"))->request.intent,
            Create(Post(R"({"image":"i","user_data_base64":"c2VjcmV0"})"))->request.intent);
  EXPECT_EQ(Create(Post(R"({"image":"i","user_data":""})"))->request.intent.user_data_mac,
            std::nullopt);
}

TEST_F(ParseBodyTest, DryRunNeedsNoKeyAndIsNoPartOfTheFingerprint) {
  http::Request request = Post(R"({"image":"i"})");
  const Digest plain = model::Fingerprint(Create(request)->request.asked.request);
  request.query = {{"dry_run", "false"}};
  EXPECT_FALSE(IsDryRun(request));
  EXPECT_FALSE(Create(request)->is_dry_run);
  EXPECT_EQ(model::Fingerprint(Create(request)->request.asked.request), plain);
  // report 76
  request.query = {{"dry_run", "true"}};
  EXPECT_TRUE(IsDryRun(request));
  EXPECT_EQ(model::Fingerprint(Create(request)->request.asked.request), plain);
  request.headers = {};
  request.headers.Add("Content-Type", "application/json");
  ASSERT_TRUE(Create(request));
  EXPECT_TRUE(Create(request)->is_dry_run);
  EXPECT_FALSE(Create(request)->request.asked.key);
  request.query = {};
  EXPECT_EQ(Create(request).error().code, "idempotency_key_required");
}

// report 74
TEST_F(ParseBodyTest, SpellingIsNoPartOfTheFingerprint) {
  const auto fingerprint = [this](const std::string& body) {
    return model::Fingerprint(Create(Post(body))->request.asked.request);
  };
  const Digest one = fingerprint(R"({"image":"i","cpus":1,"ssh_keys":[]})");
  EXPECT_EQ(fingerprint(R"( { "ssh_keys" : [ ], "cpus" : 1.0, "\u0069mage" : "\u0069" } )"), one);
  EXPECT_NE(fingerprint(R"({"image":"i","cpus":2,"ssh_keys":[]})"), one);
  // As sent: a default that is written out is another request.
  EXPECT_NE(fingerprint(R"({"image":"i","cpus":1})"), one);
}

TEST_F(ParseBodyTest, RefusesEachBadMemberWithItsPointer) {
  const std::string long_name(60, 'a');
  const std::vector<std::pair<std::string, Pointers>> cases = {
      {R"({})", {"/image"}},
      {R"({"image":""})", {"/image"}},
      {R"({"image":null})", {"/image"}},
      {R"({"image":7})", {"/image"}},
      {R"({"image":"a\nb"})", {"/image"}},
      {R"({"image":"i","name":""})", {"/name"}},
      {R"({"image":"i","name":"Web"})", {"/name"}},
      {R"({"image":"i","name":"-web"})", {"/name"}},
      {R"({"image":"i","name":"a.b"})", {"/name"}},
      {R"({"image":"i","name":")" + std::string(64, 'a') + "\"}", {"/name"}},
      {R"({"image":"i","count":100,"name":")" + long_name + "a\"}", {"/name"}},
      {R"({"image":"i","count":100,"name":")" + long_name + "\"}", {"accepted"}},
      {R"({"image":"i","count":0})", {"/count"}},
      {R"({"image":"i","count":101})", {"/count"}},
      {R"({"image":"i","count":"1"})", {"/count"}},
      {R"({"image":"i","count":1.5})", {"/count"}},
      {R"({"image":"i","cpus":0})", {"/cpus"}},
      {R"({"image":"i","cpus":129})", {"/cpus"}},
      {R"({"image":"i","memory_mib":31})", {"/memory_mib"}},
      {R"({"image":"i","memory_mib":1048577})", {"/memory_mib"}},
      {R"({"image":"i","disk_gib":-1})", {"/disk_gib"}},
      {R"({"image":"i","disk_gib":16385})", {"/disk_gib"}},
      {R"({"image":"i","hostname":"a_b"})", {"/hostname"}},
      {R"({"image":"i","hostname":""})", {"/hostname"}},
      {R"({"image":"i","ssh_keys":"ssh-rsa AAAA"})", {"/ssh_keys"}},
      {R"({"image":"i","ssh_keys":["ssh-rsa AAAA","ssh-rsa AAAA\nssh-rsa BBBB"]})",
       {"/ssh_keys/1"}},
      {R"({"image":"i","ssh_keys":["rsa AAAA"]})", {"/ssh_keys/0"}},
      {R"({"image":"i","ssh_keys":[7]})", {"/ssh_keys/0"}},
      {R"({"image":"i","labels":[]})", {"/labels"}},
      {R"({"image":"i","labels":{"a":1}})", {"/labels/a"}},
      {R"({"image":"i","labels":{"":"x"}})", {"/labels/"}},
      {R"({"image":"i","labels":{"a=b":"x"}})", {"/labels/a=b"}},
      {R"({"image":"i","labels":{"a/~":"x"}})", {"/labels/a~1~0"}},
      {R"({"image":"i","labels":{"a":"x\u0007"}})", {"/labels/a"}},
      {R"({"image":"i","user_data":7})", {"/user_data"}},
      {R"({"image":"i","user_data_base64":"c2Vjcm"})", {"/user_data_base64"}},
      {R"({"image":"i","user_data":"a","user_data_base64":"YQ=="})", {"/user_data_base64"}},
      {R"({"image":"i","imagee":"i"})", {"/imagee"}},
      {R"({"image":"i","dry_run":true})", {"/dry_run"}},
      {R"({"cpus":0,"nam":"x"})", {"/image", "/cpus", "/nam"}},
      {R"([])", {""}},
      {R"("image")", {""}},
      {R"({"image":"i")", {"invalid_json"}},
      {R"({"image":"i","image":"i"})", {"invalid_json"}},
      {R"({"image":"i\u0000"})", {"invalid_json"}},
      {R"({"image":"i","cpus":9007199254740993})", {"invalid_json"}},
      {"{\"image\":\"\xff\"}", {"invalid_json"}},
  };
  for (const auto& [body, pointers] : cases) EXPECT_EQ(Wrong(body), pointers) << body;
}

TEST_F(ParseBodyTest, RefusesEachBadWayInWithItsPointer) {
  const std::vector<std::pair<std::string, Pointers>> cases = {
      {R"({"image":"i","network":""})", {"/network"}},
      {R"({"image":"i","network":"bridge:"})", {"/network"}},
      {R"({"image":"i","network":"a b"})", {"/network"}},
      {R"({"image":"i","forward":22})", {"/forward"}},
      {R"({"image":"i","forward":[22]})", {"/forward/0"}},
      {R"({"image":"i","forward":[{}]})", {"/forward/0/guest_port"}},
      {R"({"image":"i","forward":[{"guest_port":0}]})", {"/forward/0/guest_port"}},
      {R"({"image":"i","forward":[{"guest_port":65536}]})", {"/forward/0/guest_port"}},
      {R"({"image":"i","forward":[{"guest_port":22,"host_port":1023}]})", {"/forward/0/host_port"}},
      {R"({"image":"i","forward":[{"guest_port":22,"protocol":"TCP"}]})", {"/forward/0/protocol"}},
      {R"({"image":"i","forward":[{"guest_port":22,"port":1}]})", {"/forward/0/port"}},
      {R"({"image":"i","forward":[{"guest_port":22},{"guest_port":22}]})",
       {"/forward/1/guest_port"}},
      {R"({"image":"i","forward":[{"guest_port":22},{"guest_port":22,"protocol":"udp"}]})",
       {"accepted"}},
      {R"({"image":"i","forward":[{"guest_port":1,"host_port":2022},)"
       R"({"guest_port":2,"host_port":2022}]})",
       {"/forward/1/host_port"}},
      {R"({"image":"i","count":2,"forward":[{"guest_port":22,"host_port":2022}]})",
       {"/forward/0/host_port"}},
      {R"({"image":"i","network":"lan","forward":[{"guest_port":22}]})", {"/forward"}},
      {R"({"image":"i","forward":[{"guest_port":1},{"guest_port":2},{"guest_port":3},)"
       R"({"guest_port":4},{"guest_port":5},{"guest_port":6},{"guest_port":7},{"guest_port":8},)"
       R"({"guest_port":9},{"guest_port":10},{"guest_port":11},{"guest_port":12},)"
       R"({"guest_port":13},{"guest_port":14},{"guest_port":15},{"guest_port":16},)"
       R"({"guest_port":17}]})",
       {"/forward"}},
  };
  for (const auto& [body, pointers] : cases) EXPECT_EQ(Wrong(body), pointers) << body;
}

TEST_F(ParseBodyTest, BoundsUserDataByItsDecodedBytes) {
  constexpr std::size_t kMost = 64 << 10;
  const auto body = [](std::string_view member, std::string text) {
    return json::serialize(json::object{{"image", "i"}, {member, std::move(text)}});
  };
  EXPECT_EQ(Wrong(body("user_data", std::string(kMost, 'x'))), Pointers{"accepted"});
  EXPECT_EQ(Wrong(body("user_data", std::string(kMost + 1, 'x'))), Pointers{"/user_data"});
  EXPECT_EQ(Wrong(body("user_data_base64", ToBase64(std::string(kMost, '\0')))),
            Pointers{"accepted"});
  EXPECT_EQ(Wrong(body("user_data_base64", ToBase64(std::string(kMost + 1, '\0')))),
            Pointers{"/user_data_base64"});
}

TEST_F(ParseBodyTest, SuggestsTheNearestName) {
  const auto parsed = Create(Post(R"({"image":"i","cpu":1})"));
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().detail.find("cpus"), std::string::npos) << parsed.error().detail;
}

TEST_F(ParseBodyTest, RefusesACreateWithoutAUsableHead) {
  http::Request request = Post(R"({"image":"i"})");
  request.headers.Add("Idempotency-Key", "k-2");
  EXPECT_EQ(Create(request).error().code, "invalid_idempotency_key");
  request = Post(R"({"image":"i"})");
  request.headers.Set("Content-Type", "text/plain");
  EXPECT_EQ(Create(request).error().code, "unsupported_media_type");
  request = Post(R"({"image":"i"})");
  request.query = {{"wait", "10"}};
  EXPECT_EQ(Create(request).error().fields.at(0).pointer, "wait");
  request = Post("");
  EXPECT_EQ(Create(request).error().code, "invalid_request");
  request.headers = {};
  EXPECT_EQ(Create(request).error().code, "unsupported_media_type");
}

TEST_F(ParseBodyTest, AChangeNeedsNeitherKeyNorBody) {
  http::Request request;
  request.principal = Post("").principal;
  request.method = "DELETE";
  request.path_params = {{"id", "01890A5D-AC96-774B-BCCE-B302099A8057"}};
  request.headers.Add("If-Match", "\"4\"");
  request.headers.Add("Prefer", "wait=3");
  const Parsed<ChangeRequest> change = ParseChange(request, ChangeRequest::Kind::kDelete);
  ASSERT_TRUE(change) << change.error().detail;
  EXPECT_EQ(ToString(change->vm), kId);
  EXPECT_EQ(change->if_version, 4);
  EXPECT_EQ(change->asked.wait, std::chrono::seconds(3));
  EXPECT_FALSE(change->asked.key);
  EXPECT_TRUE(change->asked.request.body.is_null());
  // One spelling of the route, whatever that of the id.
  EXPECT_EQ(change->asked.request.route, "/v1/vms/" + std::string(kId));
}

TEST_F(ParseBodyTest, ReadsPowerChangesAndUpdates) {
  const auto stop = ParseChange(OnVm(R"({"force":true})"), ChangeRequest::Kind::kStop);
  ASSERT_TRUE(stop);
  EXPECT_TRUE(stop->force);
  EXPECT_EQ(stop->asked.request.route, "/v1/vms/" + std::string(kId) + "/stop");
  EXPECT_FALSE(ParseChange(OnVm(""), ChangeRequest::Kind::kStop)->force);
  const auto update =
      ParseChange(OnVm(R"({"name":"b","labels":{"a":"b"}})"), ChangeRequest::Kind::kUpdate);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->name, "b");
  EXPECT_EQ(update->labels, (std::map<std::string, std::string>{{"a", "b"}}));
  const auto powered =
      ParseChange(OnVm(R"({"desired":"stopped","restart":"never"})"), ChangeRequest::Kind::kUpdate);
  ASSERT_TRUE(powered.has_value());
  EXPECT_EQ(powered->desired, model::Desired::kStopped);
  EXPECT_EQ(powered->restart, model::RestartPolicy::kNever);
  const auto cleared = ParseChange(OnVm(R"({"labels":{}})"), ChangeRequest::Kind::kUpdate);
  ASSERT_TRUE(cleared);
  EXPECT_EQ(cleared->name, std::nullopt);
  EXPECT_EQ(cleared->labels->size(), 0u);
}

TEST_F(ParseBodyTest, RefusesBadChanges) {
  using Kind = ChangeRequest::Kind;
  const auto code = [](const http::Request& request, Kind kind) {
    const auto parsed = ParseChange(request, kind);
    if (parsed) return std::string("accepted");
    return parsed.error().code +
           (parsed.error().fields.empty() ? "" : " " + parsed.error().fields[0].pointer);
  };
  EXPECT_EQ(code(OnVm("{}", "web"), Kind::kDelete), "vm_not_found");
  EXPECT_EQ(code(OnVm("{}"), Kind::kDelete), "accepted");
  EXPECT_EQ(code(OnVm(R"({"force":true})"), Kind::kDelete), "invalid_request /force");
  EXPECT_EQ(code(OnVm(R"({"force":1})"), Kind::kStop), "invalid_request /force");
  EXPECT_EQ(code(OnVm("[]"), Kind::kStart), "invalid_request ");
  EXPECT_EQ(code(OnVm("{"), Kind::kReboot), "invalid_json");
  EXPECT_EQ(code(OnVm("{}"), Kind::kUpdate), "invalid_request /name");
  EXPECT_EQ(code(OnVm(""), Kind::kUpdate), "invalid_request /name");
  EXPECT_EQ(code(OnVm(R"({"name":null})"), Kind::kUpdate), "invalid_request /name");
  EXPECT_EQ(code(OnVm(R"({"cpus":2})"), Kind::kUpdate), "invalid_request /name");
  EXPECT_EQ(code(OnVm(R"({"desired":"paused"})"), Kind::kUpdate), "invalid_request /desired");
  EXPECT_EQ(code(OnVm(R"({"restart":"always"})"), Kind::kUpdate), "invalid_request /restart");
  http::Request request = OnVm("");
  request.query = {{"force", "true"}};
  EXPECT_EQ(code(request, Kind::kStop), "invalid_request force");
  request = OnVm("");
  request.headers.Add("If-Match", "4");
  EXPECT_EQ(code(request, Kind::kDelete), "invalid_request If-Match");
  request = OnVm("");
  request.headers.Add("Origin", "http://evil.example");
  EXPECT_EQ(code(request, Kind::kStart), "origin_not_allowed Origin");
}

TEST_F(ParseBodyTest, ABareChangeTakesNoMembers) {
  EXPECT_TRUE(ParseBare(Post(""), "/v1/reconcile"));
  EXPECT_TRUE(ParseBare(Post("{}"), "/v1/reconcile"));
  EXPECT_EQ(ParseBare(Post(R"({"host":"a"})"), "/v1/reconcile").error().fields.at(0).pointer,
            "/host");
  EXPECT_EQ(ParseOperationId(OnVm("", "x")).error().code, "operation_not_found");
}

}  // namespace
}  // namespace vmonce::rest
