// Tokens, and how many keys a project has.
#include "ledger/contract_world.h"
#include "ledger/counters.h"
#include "ledger/migrate.h"
#include "model/auth_limits.h"
#include "ports/token_store.h"

namespace vmonce::ledger {
namespace {

namespace limits = model::limits;
using ports::DeclineReason;

class TokenRows : public LedgerContract {
 protected:
  ports::TokenStore& store() { return dynamic_cast<ports::TokenStore&>(*world.ledger); }

  model::Token NewToken(const std::string& secret) {
    model::Token token;
    token.id = model::TokenId{world.NewId()};
    token.hash = model::TokenHash(secret);
    token.project = {"web"};
    token.role = model::Role::kAdmin;
    token.name = "ci";
    token.prefix = "vmo_1a2b3c";
    token.created_by = model::TokenId{world.NewId()};
    token.expires = world.clock.Now() + std::chrono::hours(1);
    return token;
  }
};
INSTANTIATE_TEST_SUITE_P(TokenRows, TokenRows, AllAdapters(), AdapterName);

TEST_P(TokenRows, AreReadBackAsTheyWereMade) {
  model::Token token = NewToken("a");
  const auto made = store().CreateToken(token);
  ASSERT_TRUE(made.has_value());
  EXPECT_TRUE(made->is_new);
  token.created = world.clock.Now();
  EXPECT_EQ(made->token, token);
  EXPECT_EQ(store().Tokens(), std::vector<model::Token>{token});
  const auto again = store().CreateToken(token);
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(store().Tokens()->size(), 1u);
}

TEST_P(TokenRows, BeginWithAnAdminAndHaveEveryRole) {
  model::Token member = NewToken("a");
  member.role = model::Role::kMember;
  const auto refused = store().CreateToken(member);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(store().Tokens()->empty());
  ASSERT_TRUE(store().CreateToken(NewToken("b")));
  for (const auto role : {model::Role::kMetrics, model::Role::kViewer, model::Role::kMember}) {
    model::Token token = NewToken(std::string(ToString(role)));
    token.role = role;
    EXPECT_TRUE(store().CreateToken(token));
  }
  EXPECT_EQ(store().Tokens()->size(), 4u);
}

TEST_P(TokenRows, AreRevokedOnceAndForAll) {
  const model::Token token = NewToken("a");
  ASSERT_TRUE(store().CreateToken(token));
  const Time first = world.clock.Now();
  EXPECT_EQ((*store().RevokeToken(token.id))->revoked, first);
  world.clock.Advance(Milliseconds(10));
  EXPECT_EQ((*store().RevokeToken(token.id))->revoked, first);
  EXPECT_EQ(*store().RevokeToken(model::TokenId{world.NewId()}), std::nullopt);
}

TEST_P(TokenRows, OfLongAgoAreForgottenButNeverTheLast) {
  const model::Token old = NewToken("a");
  ASSERT_TRUE(store().CreateToken(old));
  world.clock.Advance(limits::kTokenRecord + std::chrono::hours(2));
  EXPECT_EQ(store().Tokens()->size(), 1u);
  const model::Token fresh = NewToken("b");
  ASSERT_TRUE(store().CreateToken(fresh));
  const auto left = store().Tokens();
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().id, fresh.id);
}

TEST_P(TokenRows, WhoAskedStandsInTheTimeline) {
  auto submission = world.Create("key-1", {"web"});
  submission.token = model::TokenId{world.NewId()};
  world.MustAccept(submission);
  const auto lines = world.ledger->Timeline(submission.operation.id);
  ASSERT_TRUE(lines && !lines->empty());
  EXPECT_EQ(lines->front().event, "accepted");
  EXPECT_EQ(lines->front().detail, "rest with token " + ToString(*submission.token));
}

// report 71
TEST_P(TokenRows, AProjectRemembersSoManyKeysAndNoMore) {
  const auto vm = world.NewVm("key-1", "a");
  world.MakeReady();
  auto second = world.Create("key-2", {"b"});
  second.max_keys = 1;
  EXPECT_EQ(WhyDeclined(world.Accept(second)), DeclineReason::kTooManyKeys);
  auto stop = world.Stop("key-3", vm.id);
  stop.max_keys = 1;
  EXPECT_EQ(WhyDeclined(world.Accept(stop)), DeclineReason::kTooManyKeys);
  // A known key, a request without one, and what gives keys back are not held up.
  auto again = world.Create("key-1", {"a"});
  again.max_keys = 1;
  EXPECT_NE(As<ports::Known>(world.Accept(again)), nullptr);
  auto removal = world.Delete("key-4", vm.id);
  removal.max_keys = 1;
  EXPECT_NE(As<ports::Accepted>(world.Accept(removal)), nullptr);
  EXPECT_EQ(world.ledger->LiveKeys(world.project), 2);
  // Nor is another project.
  world.project.value = "other";
  auto others = world.Create("key-1", {"a"});
  others.max_keys = 1;
  EXPECT_NE(As<ports::Accepted>(world.Accept(others)), nullptr);
}

TEST_P(TokenRows, KeysComeBackWhenTheirRecordsExpire) {
  const auto vm = world.NewVm("key-1", "a");
  world.MakeReady();
  world.MustAccept(world.Delete("key-2", vm.id));
  world.MakeDeleted();
  EXPECT_EQ(world.ledger->LiveKeys(world.project), 2);
  const model::RetentionPolicy policy;
  world.clock.Advance(policy.retention + std::chrono::hours(1));
  ASSERT_TRUE(world.ledger->Sweep(policy, 100));
  EXPECT_EQ(world.ledger->LiveKeys(world.project), 0);
}

TEST(Tokens, AnOlderLedgersKeysAreCounted) {
  const auto random = NewSystemRandom();
  const auto logger = NewNullLogger();
  auto db = Db::Open("", OpenMode::kReadWrite);
  ASSERT_TRUE(db.has_value());
  const auto all = EmbeddedMigrations();
  ASSERT_TRUE(Migrate(**db, "", all.subspan(0, 1), *random, *logger));
  for (int i = 1; i <= 3; ++i) {
    (*db)->Run(
        "INSERT INTO operations VALUES (?1, ?2, ?3, 'create', 'accepted', ?4, '', ?5, 1, '{}', "
        "'{}', 'rest', NULL, NULL, 1, 0, 'unleased', 0, 0, 0, x'', '[]', NULL, 0, 0, NULL)",
        i, Uuid{{static_cast<std::uint8_t>(i)}}, i == 3 ? "b" : "a",
        Digest{static_cast<std::uint8_t>(i)}, Digest{});
  }
  (*db)->Run("INSERT INTO usage VALUES ('a', 7, 7, 7, 7)");
  ASSERT_FALSE((*db)->TakeError().has_value());
  ASSERT_TRUE(Migrate(**db, "", all, *random, *logger));
  Counters counters(**db);
  EXPECT_EQ(counters.LiveKeys({"a"}), 2);
  EXPECT_EQ(counters.UsedBy({"a"}).vms, 7);
  EXPECT_EQ(counters.LiveKeys({"b"}), 1);
}

}  // namespace
}  // namespace vmonce::ledger
