#include "api/rest/gate.h"

#include <gtest/gtest.h>

#include "api/rest/routes.h"
#include "base/fake_clock.h"
#include "base/json.h"
#include "base/system.h"
#include "service/fake_token_store.h"
#include "service/tokens.h"

namespace vmonce::rest {
namespace {

class GateTest : public testing::Test {
 protected:
  GateTest() {
    for (const model::Role role :
         {model::Role::kAdmin, model::Role::kMember, model::Role::kViewer, model::Role::kMetrics}) {
      service::NewToken wanted;
      wanted.project = {"web"};
      wanted.role = role;
      secrets_[role] = tokens_.Create(wanted)->secret;
    }
  }

  static http::Request Bearing(const std::string& authorization) {
    http::Request request;
    request.method = "POST";
    // Known or not: it opens nothing.
    request.headers.Add("Idempotency-Key", "k-1");
    if (!authorization.empty()) request.headers.Add("Authorization", authorization);
    return request;
  }

  int StatusOf(Access access, const std::string& authorization) {
    http::Request request = Bearing(authorization);
    const std::optional<http::Response> refusal = gate_.Admit(access, request);
    EXPECT_EQ(refusal.has_value(), request.principal == nullptr);
    return refusal ? refusal->status : 200;
  }

  FakeClock clock_;
  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  std::unique_ptr<Random> random_ = NewSystemRandom();
  std::unique_ptr<Logger> logger_ = NewNullLogger();
  service::FakeTokenStore store_{clock_};
  service::Authenticator authenticator_{store_, clock_, *threads_, /*always=*/true};
  service::Tokens tokens_{store_, authenticator_, clock_, *random_, *logger_};
  Gate gate_{authenticator_, clock_, *logger_, {.per_second = 10, .burst = 100}};
  std::map<model::Role, std::string> secrets_;
};

// report 67
TEST_F(GateTest, NoRouteButTheOpenOnesIsReachedWithoutCredentialsAndNothingIsRead) {
  const int reads = store_.reads;
  for (const RouteEntry& route : AllRoutes()) {
    if (route.access == Access::kOpen) continue;
    EXPECT_EQ(StatusOf(route.access, ""), 401) << route.path_template;
    EXPECT_EQ(StatusOf(route.access, "Bearer vmo_wrong"), 401) << route.path_template;
  }
  EXPECT_EQ(store_.reads, reads);
}

TEST_F(GateTest, EveryRouteServesItsRoleAndThoseAbove) {
  const std::map<Access, model::Role> least = {{Access::kViewer, model::Role::kViewer},
                                               {Access::kMember, model::Role::kMember},
                                               {Access::kAdmin, model::Role::kAdmin}};
  for (const RouteEntry& route : AllRoutes()) {
    if (route.access == Access::kOpen || route.access == Access::kMetrics) continue;
    for (const auto& [role, secret] : secrets_) {
      const int expected = role >= least.at(route.access) ? 200 : 403;
      EXPECT_EQ(StatusOf(route.access, "Bearer " + secret), expected)
          << route.method << " " << route.path_template << " as " << ToString(role);
    }
  }
}

TEST_F(GateTest, TheMetricsAreReadByTheirOwnRoleAndTheOperatorAlone) {
  for (const auto& [role, secret] : secrets_) {
    const bool may = role == model::Role::kMetrics || role == model::Role::kAdmin;
    EXPECT_EQ(StatusOf(Access::kMetrics, "Bearer " + secret), may ? 200 : 403) << ToString(role);
  }
  http::Request viewer = Bearing("Bearer " + secrets_[model::Role::kViewer]);
  const auto forbidden = gate_.Admit(Access::kMetrics, viewer);
  ASSERT_TRUE(forbidden);
  EXPECT_NE(forbidden->body.find("role metrics or admin"), std::string::npos);
}

TEST_F(GateTest, ARefusalSaysWhatToDo) {
  http::Request stranger = Bearing("");
  const auto unknown = gate_.Admit(Access::kViewer, stranger);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->headers.Find("WWW-Authenticate"), R"(Bearer realm="vmonce")");
  http::Request wrong = Bearing("Bearer vmo_wrong");
  const auto invalid = gate_.Admit(Access::kViewer, wrong);
  ASSERT_TRUE(invalid);
  EXPECT_EQ(invalid->headers.Find("WWW-Authenticate"),
            R"(Bearer realm="vmonce", error="invalid_token")");
  EXPECT_EQ(invalid->body.find("vmo_wrong"), std::string::npos);
  http::Request viewer = Bearing("Bearer " + secrets_[model::Role::kViewer]);
  const auto forbidden = gate_.Admit(Access::kAdmin, viewer);
  ASSERT_TRUE(forbidden);
  const auto problem = ParseStrictJson(forbidden->body);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->at("code"), "forbidden");
  EXPECT_NE(problem->at("detail").get_string().find("role admin"), std::string::npos);
}

TEST_F(GateTest, ATokenHasItsRateAndHearsWhenToComeAgain) {
  const std::string busy = "Bearer " + secrets_[model::Role::kMember];
  for (int i = 0; i < 100; ++i) EXPECT_EQ(StatusOf(Access::kMember, busy), 200) << i;
  http::Request request = Bearing(busy);
  const auto refusal = gate_.Admit(Access::kMember, request);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 429);
  EXPECT_EQ(refusal->headers.Find("Retry-After"), "1");
  const auto problem = ParseStrictJson(refusal->body);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->at("code"), "rate_limited");
  EXPECT_EQ(problem->at("retryable"), true);
  EXPECT_EQ(problem->at("retry_same_key"), true);
  // Nobody else pays for it.
  EXPECT_EQ(StatusOf(Access::kMember, "Bearer " + secrets_[model::Role::kAdmin]), 200);
  clock_.Advance(Milliseconds(100));
  EXPECT_EQ(StatusOf(Access::kMember, busy), 200);
}

TEST_F(GateTest, AStrangersAddressIsAnsweredSoOftenAndNoOtherPaysForIt) {
  const auto status_from = [this](const char* address, const std::string& authorization) {
    http::Request request = Bearing(authorization);
    request.remote_address = address;
    const auto refusal = gate_.Admit(Access::kViewer, request);
    return refusal ? refusal->status : 200;
  };
  for (int i = 0; i < 100; ++i) EXPECT_EQ(status_from("192.0.2.1", "Bearer x"), 401) << i;
  EXPECT_EQ(status_from("192.0.2.1", "Bearer x"), 429);
  EXPECT_EQ(status_from("192.0.2.2", "Bearer x"), 401);
  // Who has a token is served from there all the same.
  EXPECT_EQ(status_from("192.0.2.1", "Bearer " + secrets_[model::Role::kViewer]), 200);
}

TEST_F(GateTest, CredentialsThatAreNotOneBearerTokenAreNone) {
  const std::string secret = secrets_[model::Role::kAdmin];
  EXPECT_EQ(StatusOf(Access::kAdmin, "bearer  " + secret), 200);
  for (const std::string& line :
       {"Basic " + secret, secret, std::string("Bearer"), std::string("Bearer "),
        "Bearer " + secret + " ", "Bearer " + secret + "," + secret}) {
    EXPECT_EQ(StatusOf(Access::kAdmin, line), 401) << line;
  }
  http::Request twice = Bearing("Bearer " + secret);
  twice.headers.Add("Authorization", "Bearer " + secret);
  EXPECT_EQ(gate_.Admit(Access::kAdmin, twice)->status, 401);
}

}  // namespace
}  // namespace vmonce::rest
