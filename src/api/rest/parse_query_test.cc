#include "api/rest/parse_query.h"

#include <gtest/gtest.h>

#include "model/idempotency.h"
#include "model/vm.h"

namespace vmonce::rest {
namespace {

http::Request Query(std::vector<http::NamedValue> query) {
  http::Request request;
  request.query = std::move(query);
  return request;
}

// Reads all kinds that there are, and gives what is wrong.
std::optional<model::Problem> ReadAll(const http::Request& request) {
  QueryReader query(request);
  query.Text("name");
  query.Int("offset", {-5, 5});
  query.Bool("dry_run");
  query.Id("vm");
  query.Word("state", &model::ParseVmState, "ready or so");
  query.KeyHash();
  query.Page();
  return query.Finish();
}

TEST(ParseQuery, ReadsWhatIsThere) {
  const http::Request request = Query({{"name", "a b"},
                                       {"offset", "-5"},
                                       {"dry_run", "true"},
                                       {"vm", "01890A5D-ac96-774b-bcce-b302099a8057"},
                                       {"state", "ready"},
                                       {"idempotency_key", "\"k\""},
                                       {"limit", "7"},
                                       {"cursor", "c"}});
  QueryReader query(request);
  EXPECT_EQ(query.Text("name"), "a b");
  EXPECT_EQ(query.Int("offset", {-5, 5}), -5);
  EXPECT_EQ(query.Bool("dry_run"), true);
  EXPECT_EQ(ToString(query.Id("vm").value()), "01890a5d-ac96-774b-bcce-b302099a8057");
  EXPECT_EQ(query.Word("state", &model::ParseVmState, ""), model::VmState::kReady);
  EXPECT_EQ(query.KeyHash(), model::KeyHash({"k"}));
  const ports::Page page = query.Page();
  EXPECT_EQ(page.most, 7);
  EXPECT_EQ(page.after, "c");
  EXPECT_EQ(query.Finish(), std::nullopt);
}

TEST(ParseQuery, HasDefaultsForWhatIsAbsent) {
  const http::Request request = Query({});
  QueryReader query(request);
  EXPECT_EQ(query.Text("name"), std::nullopt);
  const ports::Page page = query.Page();
  EXPECT_EQ(page.most, 50);
  EXPECT_EQ(page.after, "");
  EXPECT_EQ(query.Finish(), std::nullopt);
}

TEST(ParseQuery, RefusesEachBadParameterByItsName) {
  const std::vector<http::NamedValue> cases = {{"name", ""},
                                               {"offset", "6"},
                                               {"offset", ""},
                                               {"offset", "1.0"},
                                               {"offset", " 1"},
                                               {"offset", "+1"},
                                               {"offset", "0x1"},
                                               {"dry_run", "1"},
                                               {"dry_run", "TRUE"},
                                               {"dry_run", ""},
                                               {"vm", "7"},
                                               {"state", "Ready"},
                                               {"state", "none"},
                                               {"limit", "0"},
                                               {"limit", "101"},
                                               {"limit", "99999999999999999999"},
                                               {"cursor", ""},
                                               {"Name", "a"},
                                               {"unknown", "a"},
                                               {"", ""},
                                               {"idempotency_key", ""},
                                               {"idempotency_key", "\"a"}};
  for (const http::NamedValue& parameter : cases) {
    const auto problem = ReadAll(Query({parameter}));
    ASSERT_TRUE(problem) << parameter.name << "=" << parameter.value;
    EXPECT_EQ(problem->code, "invalid_request");
    ASSERT_EQ(problem->fields.size(), 1u);
    EXPECT_EQ(problem->fields[0].pointer, parameter.name);
  }
}

TEST(ParseQuery, TellsAllThatIsWrongAtOnce) {
  const auto problem = ReadAll(Query({{"limit", "0"}, {"offset", "x"}, {"colour", "red"}}));
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->fields.size(), 3u);
  EXPECT_NE(problem->detail.find("limit must be"), std::string::npos);
}

TEST(ParseQuery, RefusesAParameterThatStandsTwice) {
  const auto problem = ReadAll(Query({{"name", "a"}, {"name", "a"}}));
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->fields.at(0).pointer, "name");
}

TEST(ParseQuery, RoutesWithoutParametersRefuseAll) {
  EXPECT_TRUE(RefuseQuery(Query({{"a", "1"}})));
  EXPECT_FALSE(RefuseQuery(Query({})));
}

}  // namespace
}  // namespace vmonce::rest
