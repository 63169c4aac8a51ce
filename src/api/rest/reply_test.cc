#include "api/rest/reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/rest/contract_check.h"
#include "api/rest/samples.h"
#include "http/problem.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
using model::OperationState;
using std::chrono::seconds;
using testing::IsEmpty;

class ReplyTest : public testing::Test {
 protected:
  static service::Answer AnswerOf(OperationState state, bool is_replay) {
    service::Answer answer;
    answer.is_replay = is_replay;
    answer.operation = SampleOperation(state);
    answer.vms = {SampleVm()};
    return answer;
  }

  static std::string Header(const http::Response& response, std::string_view name) {
    return std::string(response.headers.Find(name).value_or("none"));
  }

  static json::value Body(const http::Response& response) { return json::parse(response.body); }

  const ContractCheck contract_;
  const Telling telling_{&SampleStepName, kNoon + seconds(4), seconds(0)};
};

TEST_F(ReplyTest, TheFirstAcceptanceIs202WithTheWholeVm) {
  const http::Response response = ReplyCreate(AnswerOf(OperationState::kAccepted, false), telling_);
  EXPECT_EQ(response.status, 202);
  EXPECT_THAT(contract_.Violations("CreateAnswer", Body(response)), IsEmpty());
  EXPECT_EQ(Body(response).at("result"), "created");
  EXPECT_EQ(Body(response).at("vm").at("id"), json::value(ToString(kVmUuid)));
  EXPECT_EQ(Header(response, "Location"), "/v1/operations/" + ToString(kOperationUuid));
  EXPECT_EQ(Header(response, "Idempotency-First-Seen"), "1970-01-01T12:00:00.000Z");
  EXPECT_EQ(Header(response, "Retry-After"), "1");
  EXPECT_EQ(Header(response, "Idempotent-Replayed"), "none");
  EXPECT_EQ(Header(response, "Idempotency-Expires"), "none");
  EXPECT_EQ(Header(response, "Preference-Applied"), "none");
}

TEST_F(ReplyTest, StatusesOfCreatesFollowTheRecord) {
  struct Case {
    OperationState state;
    bool is_replay;
    int status;
    std::string result;
  };
  for (const Case& c : {Case{OperationState::kRunning, false, 202, "created"},
                        Case{OperationState::kVerifying, true, 202, "existing"},
                        Case{OperationState::kSucceeded, false, 201, "created"},
                        Case{OperationState::kSucceeded, true, 200, "existing"},
                        Case{OperationState::kCancelled, true, 200, "existing"},
                        Case{OperationState::kCancelled, false, 200, "created"}}) {
    const http::Response response = ReplyCreate(AnswerOf(c.state, c.is_replay), telling_);
    EXPECT_EQ(response.status, c.status);
    EXPECT_EQ(Body(response).at("result"), json::value(c.result));
    EXPECT_EQ(Header(response, "Idempotent-Replayed"), c.is_replay ? "true" : "none");
    EXPECT_EQ(Header(response, "Retry-After"), c.status == 202 ? "1" : "none");
  }
}

// report 83, report 85: but for live state, a replay is as complete as the first answer.
TEST_F(ReplyTest, AReplayIsAsCompleteAsTheFirstAnswer) {
  const http::Response first = ReplyCreate(AnswerOf(OperationState::kAccepted, false), telling_);
  const http::Response replay = ReplyCreate(AnswerOf(OperationState::kAccepted, true), telling_);
  json::object one = Body(first).get_object();
  json::object two = Body(replay).get_object();
  one.erase("result");
  two.erase("result");
  EXPECT_EQ(one, two);
  for (const std::string_view name : {"Location", "Content-Type", "Idempotency-First-Seen"}) {
    EXPECT_NE(Header(first, name), "none");
    EXPECT_EQ(Header(first, name), Header(replay, name));
  }
}

TEST_F(ReplyTest, AFailureIsItsProblemAndAdvisesWhatHappensNext) {
  // report 40
  for (const bool is_passing : {true, false}) {
    service::Answer answer = AnswerOf(OperationState::kFailed, false);
    answer.operation->failure->passing = is_passing;
    const http::Response response = ReplyCreate(answer, telling_);
    EXPECT_EQ(response.status, 503);
    const json::value problem = Body(response);
    EXPECT_THAT(contract_.Violations("Problem", problem), IsEmpty());
    EXPECT_EQ(problem.at("code"), "no_capacity");
    EXPECT_EQ(problem.at("retry_same_key"), is_passing);
    EXPECT_EQ(problem.at("operation"), json::value("/v1/operations/" + ToString(kOperationUuid)));
    EXPECT_EQ(problem.at("vm"), json::value("/v1/vms/" + ToString(kVmUuid)));
    EXPECT_EQ(Header(response, "Retry-After"), is_passing ? "5" : "none");
    EXPECT_EQ(Header(response, "Content-Type"), "application/problem+json");
  }
}

TEST_F(ReplyTest, AFailedCreateWhoseVmsTheUserDeletedIsNoFailureToItsReplays) {
  service::Answer answer = AnswerOf(OperationState::kFailed, true);
  answer.vms[0].state = model::VmState::kDeleted;
  EXPECT_EQ(ReplyCreate(answer, telling_).status, 200);
  answer.vms[0].state = model::VmState::kFailed;
  EXPECT_EQ(ReplyCreate(answer, telling_).status, 503);
  answer.vms[0].delete_operation = {kOperationUuid};
  EXPECT_EQ(ReplyCreate(answer, telling_).status, 200);
  answer.is_replay = false;
  EXPECT_EQ(ReplyCreate(answer, telling_).status, 503);
}

TEST_F(ReplyTest, ChangesAre202WhileTheyRunAnd200After) {
  const http::Response running = ReplyChange(AnswerOf(OperationState::kRunning, false), telling_);
  EXPECT_EQ(running.status, 202);
  EXPECT_THAT(contract_.Violations("ChangeAnswer", Body(running)), IsEmpty());
  EXPECT_EQ(Header(running, "ETag"), "\"7\"");
  EXPECT_EQ(ReplyChange(AnswerOf(OperationState::kSucceeded, true), telling_).status, 200);
  EXPECT_EQ(ReplyChange(AnswerOf(OperationState::kCancelled, false), telling_).status, 200);
  EXPECT_EQ(ReplyChange(AnswerOf(OperationState::kFailed, false), telling_).status, 503);
}

TEST_F(ReplyTest, AChangeWithoutARecordHasNoOperation) {
  service::Answer answer = AnswerOf(OperationState::kSucceeded, true);
  answer.operation.reset();
  const http::Response response = ReplyChange(answer, telling_);
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(contract_.Violations("ChangeAnswer", Body(response)), IsEmpty());
  EXPECT_TRUE(Body(response).at("operation").is_null());
  EXPECT_EQ(Header(response, "Location"), "none");
}

TEST_F(ReplyTest, TellsOfTheWaitAndOfTheExpiry) {
  service::Answer answer = AnswerOf(OperationState::kSucceeded, true);
  answer.expires = kNoon + seconds(60);
  Telling telling = telling_;
  telling.wait = seconds(30);
  const http::Response response = ReplyCreate(answer, telling);
  EXPECT_EQ(Header(response, "Idempotency-Expires"), "1970-01-01T12:01:00.000Z");
  EXPECT_EQ(Header(response, "Preference-Applied"), "wait=30");
}

TEST_F(ReplyTest, RetryAfterGrowsWithSilenceAndStaysInBounds) {
  const model::Operation operation = SampleOperation(OperationState::kRunning);
  EXPECT_EQ(RetryAfter(operation, kNoon - seconds(9)), seconds(1));
  EXPECT_EQ(RetryAfter(operation, kNoon), seconds(1));
  EXPECT_EQ(RetryAfter(operation, kNoon + seconds(80)), seconds(10));
  EXPECT_EQ(RetryAfter(operation, kNoon + std::chrono::hours(9)), seconds(60));
}

TEST_F(ReplyTest, EveryProblemOfTheTableIsToldAsItSays) {
  for (const model::ProblemKind& kind : model::AllProblemKinds()) {
    model::Problem problem;
    problem.code = kind.code;
    problem.detail = "what happened";
    const http::Response response = Reply(problem);
    const json::value body = Body(response);
    EXPECT_EQ(response.status, kind.status);
    EXPECT_THAT(contract_.Violations("Problem", body), IsEmpty()) << kind.code;
    EXPECT_EQ(body.at("type"),
              json::value("https://vmonce.dev/problems/" + std::string(kind.code)));
    EXPECT_EQ(body.at("title"), json::value(kind.title));
    EXPECT_EQ(body.at("detail"), "what happened");
    EXPECT_EQ(body.at("retryable"), kind.retryable);
    EXPECT_EQ(body.at("retry_same_key"), kind.retry_same_key);
    EXPECT_EQ(response.headers.Count("Link"), kind.code == "idempotency_key_required" ? 1u : 0u);
  }
}

// What http/ refuses by itself is told as any other problem: it cannot see the table.
TEST_F(ReplyTest, TheServersOwnProblemsAreThoseOfTheTable) {
  const http::Problem own[] = {
      http::BadRequest("x"),           http::TlsRequired(),       http::RouteNotFound(),
      http::MethodNotAllowed("GET"),   http::RequestTimeout("x"), http::BodyTooLarge(1),
      http::UnsupportedMediaType("x"), http::ExpectationFailed(), http::HostNotAllowed(),
      http::OriginNotAllowed(),        http::HeaderTooLarge(1),   http::TransferCodingUnsupported(),
      http::HttpVersionUnsupported(),  http::Overloaded("x"),     http::InternalError()};
  for (const http::Problem& problem : own) {
    const model::ProblemKind& kind = model::KindOf(problem.code);
    const json::value body = Body(http::ToResponse(problem));
    EXPECT_THAT(contract_.Violations("Problem", body), IsEmpty()) << kind.code;
    EXPECT_EQ(body.at("title"), json::value(kind.title)) << kind.code;
    EXPECT_EQ(problem.status, kind.status) << kind.code;
    EXPECT_EQ(problem.retryable, kind.retryable) << kind.code;
    EXPECT_EQ(problem.retry_same_key, kind.retry_same_key) << kind.code;
  }
}

TEST_F(ReplyTest, AProblemTellsAllThatIsKnown) {
  model::Problem problem;
  problem.code = "idempotency_key_reused";
  problem.retry_same_key = true;
  problem.operation = model::OperationId{kOperationUuid};
  problem.vm = model::VmId{kVmUuid};
  problem.first_seen = kNoon;
  problem.differing = {"/body/cpus"};
  problem.fields = {{"/cpus", "cpus is odd"}};
  const json::value body = Body(Reply(problem));
  EXPECT_THAT(contract_.Violations("Problem", body), IsEmpty());
  EXPECT_EQ(body.at("retry_same_key"), true);
  EXPECT_EQ(body.at("vm"), json::value("/v1/vms/" + ToString(kVmUuid)));
  EXPECT_EQ(body.at("first_seen"), "1970-01-01T12:00:00.000Z");
  EXPECT_EQ(body.at("differing").at(0), "/body/cpus");
  EXPECT_EQ(body.at("fields").at(0).at("pointer"), "/cpus");
}

TEST_F(ReplyTest, RetryAfterOfAProblemIsWithinItsBounds) {
  const std::vector<std::pair<int, std::string>> cases = {
      {-3, "1"}, {0, "1"}, {7, "7"}, {3600, "60"}};
  for (const auto& [asked, told] : cases) {
    model::Problem problem;
    problem.code = "ledger_unavailable";
    problem.retry_after = seconds(asked);
    const http::Response response = Reply(problem);
    EXPECT_EQ(Header(response, "Retry-After"), told);
    EXPECT_EQ(Body(response).at("retry_after"), std::stoi(told));
  }
}

TEST_F(ReplyTest, AStoredCodeThatIsInNoRowIsToldSafely) {
  model::Problem problem;
  problem.code = "gone_for_a_walk";
  problem.detail = "It is gone.";
  const http::Response response = Reply(problem);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(Body(response).at("code"), "hypervisor_refused");
  EXPECT_EQ(Body(response).at("detail"), "It is gone. (gone_for_a_walk)");
}

TEST_F(ReplyTest, ADryRunTellsTheProblemAsItWouldBeAnswered) {
  service::DryRun run;
  run.would = service::DryRun::Would::kMismatch;
  run.problem = model::Problem{.code = "idempotency_key_reused", .detail = "other"};
  run.operation = SampleOperation(OperationState::kRunning);
  run.vms = {SampleVm()};
  const http::Response response = ReplyDryRun(run, &SampleStepName);
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(contract_.Violations("DryRunAnswer", Body(response)), IsEmpty());
  EXPECT_EQ(Body(response).at("would"), "mismatch");
  EXPECT_EQ(Body(response).at("problem").at("status"), 422);
  for (int i = 0; i <= static_cast<int>(service::DryRun::Would::kRefuse); ++i) {
    const service::DryRun bare{.would = static_cast<service::DryRun::Would>(i)};
    EXPECT_THAT(contract_.Violations("DryRunAnswer", Body(ReplyDryRun(bare, &SampleStepName))),
                IsEmpty());
  }
}

TEST_F(ReplyTest, PagesEndWithNull) {
  const http::Response more = ReplyPage({TextOf(SampleVm())}, "cursor");
  EXPECT_THAT(contract_.Violations("VmPage", Body(more)), IsEmpty());
  EXPECT_EQ(Body(more).at("next"), "cursor");
  EXPECT_TRUE(Body(ReplyPage({}, "")).at("next").is_null());
  EXPECT_EQ(Header(ReplyVm(SampleVm()), "ETag"), "\"7\"");
}

}  // namespace
}  // namespace vmonce::rest
