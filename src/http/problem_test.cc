#include "http/problem.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/clock.h"

namespace vmonce::http {
namespace {

boost::json::object Body(const Response& response) {
  return boost::json::parse(response.body).as_object();
}

TEST(Problem, HasTheMembersThatClientsBranchOn) {
  Problem problem;
  problem.status = 409;
  problem.code = "name_taken";
  problem.detail = "A machine of that name exists.";
  problem.retryable = false;
  problem.operation = "op-1";
  problem.extra["vm"] = "/v1/vms/1";
  problem.extra["status"] = 200;
  const Response response = ToResponse(problem);
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.headers.Find("content-type"), "application/problem+json");
  EXPECT_EQ(response.headers.Find("retry-after"), std::nullopt);
  const boost::json::object expected = {{"type", "https://vmonce.dev/problems/name_taken"},
                                        {"status", 409},
                                        {"code", "name_taken"},
                                        {"detail", "A machine of that name exists."},
                                        {"retryable", false},
                                        {"retry_same_key", true},
                                        {"operation", "op-1"},
                                        {"vm", "/v1/vms/1"}};
  EXPECT_EQ(Body(response), expected);
}

TEST(Problem, AsksForWholeSecondsAndAtLeastOne) {
  struct Case {
    Milliseconds wanted;
    std::string_view header;
  };
  for (const Case& one : {Case{Milliseconds(0), "1"}, Case{Milliseconds(1), "1"},
                          Case{Milliseconds(1000), "1"}, Case{Milliseconds(1001), "2"},
                          Case{Milliseconds(-5), "1"}, Case{Milliseconds(30000), "30"}}) {
    Problem problem;
    problem.code = "x";
    problem.retry_after = one.wanted;
    const Response response = ToResponse(problem);
    EXPECT_EQ(response.headers.Find("Retry-After"), one.header);
    EXPECT_EQ(std::to_string(Body(response).at("retry_after").as_int64()), one.header);
  }
}

TEST(Problem, OwnRefusalsSayWhetherToTryAgain) {
  EXPECT_TRUE(Overloaded("full").retryable);
  EXPECT_TRUE(Overloaded("full").retry_after.has_value());
  EXPECT_TRUE(RequestTimeout("slow").retryable);
  EXPECT_FALSE(BodyTooLarge(5).retryable);
  EXPECT_EQ(Body(ToResponse(BodyTooLarge(5))).at("limit_bytes").as_int64(), 5);
  EXPECT_EQ(Body(ToResponse(RouteNotFound())).at("code").as_string(), "route_not_found");
}

}  // namespace
}  // namespace vmonce::http
