#include "client/retrying_client.h"

#include <gtest/gtest.h>

#include "client/fake_transport.h"
#include "client/url.h"

namespace vmonce::client {
namespace {

using std::chrono::seconds;

constexpr std::string_view kRetryable = R"({"code":"ledger_unavailable","retryable":true})";
constexpr std::string_view kFinal = R"({"code":"internal","retryable":false})";
constexpr std::string_view kKeySpent =
    R"({"code":"hypervisor_refused","retryable":true,"retry_same_key":false})";

class RetryingClientTest : public testing::Test {
 protected:
  RetryingClientTest()
      : threads_(clock_), client_(transport_, clock_, random_, threads_, Options()) {}

  static ClientOptions Options() {
    return ClientOptions{.base_url = "http://server:1",
                         .backoff = {Milliseconds(100), Milliseconds(2'000)},
                         .attempt = Milliseconds(5'000),
                         .retry_after_max = seconds(60),
                         .max_tries = 50};
  }

  static ApiRequest Create() {
    ApiRequest request;
    request.method = "POST";
    request.path = "/v1/vms";
    request.body = "{}";
    request.key = "k-1";
    request.budget = Milliseconds(30'000);
    return request;
  }

  FakeClock clock_;
  FakeRandom random_;
  FakeThreads threads_;
  FakeTransport transport_;
  RetryingClient client_;
};

HttpResponse Answer(int status, std::string_view body) {
  return FakeTransport::Json(status, std::string(body));
}

TEST(RetryRule, HoldsForEveryOutcome) {
  struct Row {
    int status;
    std::string_view body;
    bool is_repeated;
  };
  const std::vector<Row> rows = {
      {200, "{}", false},       {202, "{}", false},       {307, "", false},
      {400, kRetryable, false}, {403, kRetryable, false}, {404, kFinal, false},
      {408, "", true},          {409, kRetryable, false}, {422, kFinal, false},
      {429, kFinal, false},     {429, kRetryable, true},  {429, "busy", true},
      {500, kFinal, false},     {500, kRetryable, true},  {500, "oops", true},
      {501, "oops", false},     {502, "", true},          {503, kRetryable, true},
      {503, kFinal, false},     {503, "busy", true},      {503, kKeySpent, false},
      {504, "", true},
  };
  for (const Row& row : rows) {
    const HttpResponse response = Answer(row.status, row.body);
    EXPECT_EQ(IsWorthAnotherTry({true, nullptr, &response}), row.is_repeated)
        << row.status << " " << row.body;
    EXPECT_FALSE(IsWorthAnotherTry({false, nullptr, &response})) << row.status;
  }
}

TEST(RetryRule, HoldsForEveryTransportError) {
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kUnknown, ErrorCode::kInvalid}) {
    const Error error{code, ""};
    EXPECT_EQ(IsWorthAnotherTry({true, &error, nullptr}), code != ErrorCode::kInvalid);
    EXPECT_FALSE(IsWorthAnotherTry({false, &error, nullptr}));
  }
}

TEST(AskedWait, IsClampedAndReadsOnlySeconds) {
  const auto asked = [](std::string value) {
    HttpResponse response = Answer(503, "");
    response.headers.emplace_back("retry-after", std::move(value));
    return AskedWait(response, seconds(60));
  };
  EXPECT_EQ(asked("5"), seconds(5));
  EXPECT_EQ(asked("0"), seconds(0));
  // report 58: a clock that is ahead must not make a client wait past its end, or backwards.
  EXPECT_EQ(asked("86400"), seconds(60));
  EXPECT_EQ(asked("99999999999999999999999999"), seconds(60));
  EXPECT_EQ(asked("-5"), std::nullopt);
  EXPECT_EQ(asked("5 apples"), std::nullopt);
  EXPECT_EQ(asked("Wed, 21 Oct 2026 07:28:00 GMT"), std::nullopt);
  EXPECT_EQ(asked(""), std::nullopt);
  const HttpResponse in_body = Answer(503, R"({"code":"x","retry_after":7})");
  EXPECT_EQ(AskedWait(in_body, seconds(60)), seconds(7));
}

// report 1
TEST_F(RetryingClientTest, SendsTheSameKeyAndBodyAgainAfterALostAnswer) {
  transport_.Queue(FakeTransport::Lost());
  transport_.Queue(FakeTransport::Refused());
  transport_.Queue(Answer(202, "{}"));
  const CallResult result = client_.Call(Create(), {});
  EXPECT_TRUE(result.IsSuccess());
  EXPECT_EQ(result.tries, 3);
  EXPECT_TRUE(result.may_have_happened);
  for (const HttpRequest& request : transport_.requests) {
    EXPECT_EQ(SentHeader(request, "Idempotency-Key"), "\"k-1\"");
    EXPECT_EQ(request.body, "{}");
  }
}

TEST_F(RetryingClientTest, NeverRepeatsAChangeWithoutAKey) {
  ApiRequest request = Create();
  request.key.reset();
  transport_.Queue(FakeTransport::Lost());
  const CallResult result = client_.Call(request, {});
  EXPECT_EQ(result.end, CallEnd::kGaveUp);
  EXPECT_EQ(transport_.requests.size(), 1u);
  EXPECT_TRUE(result.may_have_happened);
}

TEST_F(RetryingClientTest, WaitsAsLongAsAskedAndALittleMore) {
  transport_.Queue(FakeTransport::Json(429, "", {{"retry-after", "3"}}));
  transport_.Queue(Answer(202, "{}"));
  EXPECT_TRUE(client_.Call(Create(), {}).IsSuccess());
  ASSERT_EQ(threads_.sleeps.size(), 1u);
  EXPECT_GE(threads_.sleeps[0], Milliseconds(3'000));
  EXPECT_LE(threads_.sleeps[0], Milliseconds(3'100));
}

TEST_F(RetryingClientTest, GivesUpWhenTheBudgetIsSpent) {
  transport_.handler = [](const HttpRequest&) { return FakeTransport::Refused(); };
  const CallResult result = client_.Call(Create(), {});
  EXPECT_EQ(result.end, CallEnd::kGaveUp);
  EXPECT_FALSE(result.may_have_happened);
  EXPECT_GT(result.tries, 5);
  EXPECT_LE(clock_.Elapsed(), Milliseconds(30'000));
}

TEST_F(RetryingClientTest, GivesUpAtOnceWhenTheAskedWaitIsPastTheBudget) {
  ApiRequest request = Create();
  request.budget = Milliseconds(2'000);
  transport_.Queue(FakeTransport::Json(503, std::string(kRetryable), {{"retry-after", "30"}}));
  const CallResult result = client_.Call(request, {});
  EXPECT_EQ(result.end, CallEnd::kGaveUp);
  ASSERT_TRUE(result.response);
  EXPECT_EQ(result.response->status, 503);
  EXPECT_TRUE(threads_.sleeps.empty());
}

TEST_F(RetryingClientTest, ATryNeverOutlivesTheBudget) {
  ApiRequest request = Create();
  request.budget = Milliseconds(1'500);
  request.prefer_wait = seconds(1);
  transport_.Queue(Answer(202, "{}"));
  (void)client_.Call(request, {});
  EXPECT_EQ(transport_.requests[0].deadline, Milliseconds(1'500));
  EXPECT_EQ(SentHeader(transport_.requests[0], "Prefer"), "wait=1");
}

TEST_F(RetryingClientTest, TakesASuccessThatWasCutOffForALostAnswer) {
  transport_.Queue(Answer(202, R"({"operation":{"id")"));
  transport_.Queue(Answer(202, R"({"result":"created"})"));
  const CallResult result = client_.Call(Create(), {});
  EXPECT_EQ(result.tries, 2);
  EXPECT_EQ(result.json.at("result"), "created");
}

TEST_F(RetryingClientTest, StopsWaitingWhenInterrupted) {
  std::stop_source source;
  threads_.on_sleep = [&source](Milliseconds) { source.request_stop(); };
  transport_.handler = [](const HttpRequest&) { return FakeTransport::Refused(); };
  EXPECT_EQ(client_.Call(Create(), source.get_token()).end, CallEnd::kInterrupted);
  EXPECT_EQ(transport_.requests.size(), 1u);
}

TEST_F(RetryingClientTest, TellsTheCauseOfEveryFurtherTry) {
  std::vector<std::string> causes;
  client_.OnRetry([&causes](const RetryNotice& notice) { causes.push_back(notice.cause); });
  transport_.Queue(FakeTransport::Refused());
  transport_.Queue(Answer(503, kRetryable));
  transport_.Queue(Answer(200, "{}"));
  (void)client_.Call(Create(), {});
  EXPECT_EQ(causes, (std::vector<std::string>{"connection refused", "503 ledger_unavailable"}));
}

TEST(QuoteKey, EscapesWhatAStructuredStringEscapes) {
  EXPECT_EQ(QuoteKey(R"(a"b\c)"), R"("a\"b\\c")");
}

TEST(Url, IsNormalisedSoThatOneServerHasOneSpelling) {
  EXPECT_EQ(NormaliseBaseUrl("http://a:8080/"), "http://a:8080");
  EXPECT_EQ(NormaliseBaseUrl("http://a/prefix//"), "http://a/prefix");
  EXPECT_EQ(NormaliseBaseUrl("https://a:8443//"), "https://a:8443");
  for (const auto* bad : {"", "a:8080", "ftp://a", "https://", "https:///x", "http://", "http:///x",
                          "http://u@a", "http://a?x", "http://a b"}) {
    EXPECT_FALSE(NormaliseBaseUrl(bad)) << bad;
  }
  EXPECT_EQ(JoinUrl("http://a", "/v1/vms", {{"label", "a=b c"}, {"limit", "5"}}),
            "http://a/v1/vms?label=a%3Db%20c&limit=5");
}

TEST(Problem, IsReadFromForeignAnswersToo) {
  const ApiProblem redirect = ReadProblem(HttpResponse{302, {{"location", "http://evil"}}, ""});
  EXPECT_EQ(redirect.code, "http_302");
  EXPECT_NE(redirect.detail.find("http://evil"), std::string::npos);
  const ApiProblem problem = ReadProblem(Answer(422, R"({"code":"idempotency_key_reused",
      "detail":"d","differing":["/cpus"],"fields":[{"pointer":"/name","detail":"bad"}]})"));
  EXPECT_EQ(problem.code, "idempotency_key_reused");
  EXPECT_EQ(problem.differing, std::vector<std::string>{"/cpus"});
  EXPECT_EQ(problem.fields[0].first, "/name");
}

}  // namespace
}  // namespace vmonce::client
