#include "service/tokens.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "base/system.h"
#include "model/auth_limits.h"
#include "service/fake_token_store.h"

namespace vmonce::service {
namespace {

namespace limits = model::limits;

class TokensTest : public testing::Test {
 protected:
  TokensTest() { EXPECT_TRUE(authenticator_.Refresh()); }

  static NewToken Wanted(model::Role role = model::Role::kAdmin) {
    NewToken wanted;
    wanted.project = {"web"};
    wanted.role = role;
    wanted.name = "ci";
    return wanted;
  }

  CreatedToken Create(const NewToken& wanted = Wanted()) {
    auto created = tokens_.Create(wanted);
    EXPECT_TRUE(created.has_value());
    return created.value_or(CreatedToken{});
  }

  // "" when who presents it is let in.
  std::string WhyNot(std::optional<std::string_view> bearer) {
    const auto caller = authenticator_.Authenticate(bearer);
    return caller ? "" : caller.error().code;
  }

  FakeClock clock_;
  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  std::unique_ptr<Random> random_ = NewSystemRandom();
  std::unique_ptr<Logger> logger_ = NewNullLogger();
  FakeTokenStore store_{clock_};
  Authenticator authenticator_{store_, clock_, *threads_, /*always=*/false};
  Tokens tokens_{store_, authenticator_, clock_, *random_, *logger_};
};

TEST_F(TokensTest, WithoutTokensTheOperatorOfTheMachineIsLetIn) {
  const auto caller = authenticator_.Authenticate(std::nullopt);
  ASSERT_TRUE(caller);
  EXPECT_EQ((*caller)->project.value, "default");
  EXPECT_EQ((*caller)->role, model::Role::kAdmin);
  EXPECT_EQ((*caller)->token, std::nullopt);
  EXPECT_FALSE(authenticator_.AreTokensRequired());
  // Who names another project must not end in this one.
  EXPECT_EQ(WhyNot("vmo_wrong"), "unauthenticated");
  EXPECT_EQ(WhyNot(""), "unauthenticated");
}

TEST_F(TokensTest, WhereTokensAreAlwaysRequiredNobodyIsLetInWithoutOne) {
  Authenticator always(store_, clock_, *threads_, /*always=*/true);
  ASSERT_TRUE(always.Refresh());
  EXPECT_TRUE(always.AreTokensRequired());
  EXPECT_FALSE(always.Authenticate(std::nullopt));
}

TEST_F(TokensTest, ATokenIsItsProjectAndItsRoleAtOnce) {
  Create();
  const CreatedToken created = Create(Wanted(model::Role::kMember));
  const auto caller = authenticator_.Authenticate(created.secret);
  ASSERT_TRUE(caller);
  EXPECT_EQ((*caller)->project.value, "web");
  EXPECT_EQ((*caller)->role, model::Role::kMember);
  EXPECT_EQ((*caller)->token, created.token.id);
  EXPECT_TRUE(authenticator_.AreTokensRequired());
  EXPECT_EQ(WhyNot(std::nullopt), "unauthenticated");
}

TEST_F(TokensTest, TheFirstTokenIsAnAdminsSinceNobodyElseCouldMakeAnother) {
  const auto first = tokens_.Create(Wanted(model::Role::kViewer));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, "invalid_request");
  EXPECT_EQ(first.error().fields.front().pointer, "/role");
  EXPECT_FALSE(authenticator_.AreTokensRequired());
  Create();
  EXPECT_TRUE(tokens_.Create(Wanted(model::Role::kViewer)));
}

TEST_F(TokensTest, TheSecretIsKeptNowhere) {
  const CreatedToken created = Create();
  for (const model::Token& token : *store_.Tokens()) {
    EXPECT_NE(ToHex(token.hash), created.secret.substr(4));
    EXPECT_EQ(token.prefix, created.secret.substr(0, 10));
  }
}

TEST_F(TokensTest, ARevokedTokenIsRefusedAtOnceAndNothingOpensAgain) {
  const CreatedToken created = Create();
  const auto revoked = tokens_.Revoke(Caller{}, created.token.id);
  ASSERT_TRUE(revoked);
  EXPECT_TRUE(revoked->revoked.has_value());
  EXPECT_EQ(WhyNot(created.secret), "unauthenticated");
  EXPECT_EQ(WhyNot(std::nullopt), "unauthenticated");
  EXPECT_EQ(tokens_.Revoke(Caller{}, created.token.id), *revoked);
}

TEST_F(TokensTest, AnExpiredTokenIsRefusedWithoutAnythingBeingReadAnew) {
  NewToken wanted = Wanted();
  wanted.expires = clock_.Now() + Milliseconds(1'000);
  const CreatedToken created = Create(wanted);
  EXPECT_EQ(WhyNot(created.secret), "");
  clock_.Advance(Milliseconds(1'000));
  EXPECT_EQ(WhyNot(created.secret), "unauthenticated");
}

TEST_F(TokensTest, ARevocationMadeElsewhereCountsAfterTheNextLook) {
  const CreatedToken created = Create();
  ASSERT_TRUE(store_.RevokeToken(created.token.id));
  ASSERT_TRUE(authenticator_.Refresh());
  EXPECT_EQ(WhyNot(created.secret), "unauthenticated");
}

TEST_F(TokensTest, WhenTheLedgerDoesNotAnswerForLongNobodyIsLetIn) {
  const CreatedToken created = Create();
  store_.is_down = true;
  clock_.Advance(limits::kTokenStaleness);
  EXPECT_FALSE(authenticator_.Refresh());
  EXPECT_EQ(WhyNot(created.secret), "");
  clock_.Advance(Milliseconds(1));
  EXPECT_EQ(WhyNot(created.secret), "ledger_unavailable");
  EXPECT_EQ(WhyNot(std::nullopt), "ledger_unavailable");
}

TEST_F(TokensTest, ARevocationOfUnknownOutcomeLetsNobodyInUntilItIsKnown) {
  const CreatedToken created = Create();
  store_.is_down = true;
  const auto revoked = tokens_.Revoke(Caller{}, created.token.id);
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().code, "ledger_unavailable");
  EXPECT_EQ(WhyNot(created.secret), "ledger_unavailable");
  store_.is_down = false;
  ASSERT_TRUE(authenticator_.Refresh());
  EXPECT_EQ(WhyNot(created.secret), "");
}

TEST_F(TokensTest, ARequestReadsNothing) {
  const CreatedToken created = Create();
  const int before = store_.reads;
  for (int i = 0; i < 100; ++i) {
    WhyNot(created.secret);
    WhyNot("vmo_wrong");
    WhyNot(std::nullopt);
  }
  EXPECT_EQ(store_.reads, before);
}

TEST_F(TokensTest, AKeyMakesOneTokenAndTellsItsSecretOnce) {
  NewToken wanted = Wanted();
  wanted.key = model::IdempotencyKey{"k-1"};
  const CreatedToken first = Create(wanted);
  const CreatedToken again = Create(wanted);
  EXPECT_FALSE(first.is_replay);
  EXPECT_TRUE(again.is_replay);
  EXPECT_EQ(again.token, first.token);
  EXPECT_EQ(again.secret, "");
  EXPECT_EQ(WhyNot(first.secret), "");
  wanted.role = model::Role::kViewer;
  const auto other = tokens_.Create(wanted);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, "idempotency_key_reused");
  // Another project's same key is another key.
  wanted.caller.project = {"other"};
  EXPECT_FALSE(Create(wanted).is_replay);
}

TEST_F(TokensTest, AnUnknownTokenIsNotFound) {
  const auto revoked = tokens_.Revoke(Caller{}, model::TokenId{});
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().code, "token_not_found");
}

}  // namespace
}  // namespace vmonce::service
