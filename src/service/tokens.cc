#include "service/tokens.h"

#include <algorithm>

#include "service/queries.h"

namespace vmonce::service {
namespace {

// The caller's project and its key, as an id (RFC 9562 section 5.8).
model::TokenId IdOfKey(const model::ProjectId& project, const model::IdempotencyKey& key) {
  const Digest hash = model::KeyHash(key);
  std::string named = "token\n" + project.value + "\n";
  named.append(reinterpret_cast<const char*>(hash.data()), hash.size());
  const Digest digest = Sha256(named);
  model::TokenId id;
  std::copy_n(digest.begin(), id.value.bytes.size(), id.value.bytes.begin());
  id.value.bytes[6] = static_cast<std::uint8_t>(0x80 | (id.value.bytes[6] & 0x0f));
  id.value.bytes[8] = static_cast<std::uint8_t>(0x80 | (id.value.bytes[8] & 0x3f));
  return id;
}

bool IsWhatIsWanted(const model::Token& token, const NewToken& wanted) {
  return token.project == wanted.project && token.role == wanted.role &&
         token.name == wanted.name && token.expires == wanted.expires;
}

std::unexpected<model::Problem> Refuse(std::string code, std::string detail) {
  model::Problem problem;
  problem.code = std::move(code);
  problem.detail = std::move(detail);
  return std::unexpected(std::move(problem));
}

std::unexpected<model::Problem> RefuseFirst(const Error& error) {
  auto problem = Refuse("invalid_request", "Nothing was made: " + error.detail +
                                               ". Make one with the role admin first.");
  problem.error().fields.push_back({"/role", "must be admin for the first token"});
  return problem;
}

}  // namespace

MintedToken MintToken(const NewToken& wanted, Clock& clock, Random& random) {
  MintedToken minted;
  minted.secret = model::NewTokenSecret(random);
  model::Token& token = minted.token;
  token.id = wanted.key ? IdOfKey(wanted.caller.project, *wanted.key)
                        : model::TokenId{NewUuidV7(clock, random)};
  token.hash = model::TokenHash(minted.secret);
  token.project = wanted.project;
  token.role = wanted.role;
  token.name = wanted.name;
  token.prefix = model::TokenPrefix(minted.secret);
  token.created_by = wanted.caller.token;
  token.expires = wanted.expires;
  return minted;
}

std::expected<CreatedToken, model::Problem> Tokens::Create(const NewToken& wanted) {
  MintedToken minted = MintToken(wanted, clock_, random_);
  Result<ports::TokenMade> made = store_.CreateToken(minted.token);
  if (!made) {
    if (made.error().code == ErrorCode::kConflict) return RefuseFirst(made.error());
    if (made.error().code != ErrorCode::kRefused) {
      return std::unexpected(LedgerProblem(made.error()));
    }
    return Refuse("quota_exceeded", "Nothing was made: " + made.error().detail +
                                        ". Ended ones are forgotten after a year.");
  }
  CreatedToken created;
  created.token = std::move(made->token);
  created.is_replay = !made->is_new;
  if (created.is_replay) {
    if (IsWhatIsWanted(created.token, wanted)) return created;
    return Refuse("idempotency_key_reused",
                  "This Idempotency-Key was first used for another token. Nothing was done now.");
  }
  created.secret = std::move(minted.secret);
  Publish();
  logger_.Info("token_created", {{"token", ToString(created.token.id)},
                                 {"project", created.token.project.value},
                                 {"role", ToString(created.token.role)},
                                 {"by", NameOf(wanted.caller)}});
  return created;
}

std::expected<std::vector<model::Token>, model::Problem> Tokens::List() {
  Result<std::vector<model::Token>> tokens = store_.Tokens();
  if (!tokens) return std::unexpected(LedgerProblem(tokens.error()));
  std::ranges::stable_sort(*tokens, std::greater(), &model::Token::created);
  return std::move(*tokens);
}

std::expected<model::Token, model::Problem> Tokens::Revoke(const Caller& caller,
                                                           const model::TokenId& id) {
  Result<std::optional<model::Token>> token = store_.RevokeToken(id);
  // It may have been written: what is known of it is not known any more.
  Publish();
  if (!token) return std::unexpected(LedgerProblem(token.error()));
  if (!token->has_value()) {
    return Refuse("token_not_found", "There is no token " + ToString(id) + ".");
  }
  logger_.Info("token_revoked", {{"token", ToString(id)}, {"by", NameOf(caller)}});
  return std::move(**token);
}

void Tokens::Publish() {
  const Status refreshed = authenticator_.Refresh();
  if (refreshed) return;
  authenticator_.Distrust();
  logger_.Warning("tokens_not_read", {{"cause", refreshed.error().detail}});
}

}  // namespace vmonce::service
