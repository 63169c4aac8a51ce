#include "ledger/tokens.h"

#include <fmt/format.h>

#include "model/auth_limits.h"

namespace vmonce::ledger {
namespace {

namespace limits = model::limits;

model::Token ReadToken(Db& db, Query& query) {
  model::Token token;
  token.id = model::TokenId{query.Id()};
  token.hash = query.Hash();
  token.project.value = query.Text();
  const auto role = model::ParseRole(query.Text());
  if (!role) db.Fail(ErrorCode::kInternal, "a token's role cannot be read");
  token.role = role.value_or(model::Role::kViewer);
  token.name = query.Text();
  token.prefix = query.Text();
  if (const auto maker = query.MaybeId()) token.created_by = model::TokenId{*maker};
  token.created = query.At();
  token.expires = query.MaybeAt();
  token.revoked = query.MaybeAt();
  return token;
}

std::optional<model::Token> FindToken(Db& db, const model::TokenId& id) {
  Query query = db.Prepare(
      "SELECT id, hash, project, role, name, prefix, created_by, created_ms, expires_ms, "
      "revoked_ms FROM tokens WHERE id = ?1");
  if (!query.Bind(id).Next()) return std::nullopt;
  return ReadToken(db, query);
}

std::size_t CountTokens(Db& db) {
  Query query = db.Prepare("SELECT count(*) FROM tokens");
  return query.Next() ? static_cast<std::size_t>(query.Int()) : 0;
}

}  // namespace

std::vector<model::Token> Tokens(Db& db) {
  Query query = db.Prepare(
      "SELECT id, hash, project, role, name, prefix, created_by, created_ms, expires_ms, "
      "revoked_ms FROM tokens ORDER BY id");
  std::vector<model::Token> tokens;
  while (query.Next()) tokens.push_back(ReadToken(db, query));
  return tokens;
}

Result<ports::TokenMade> CreateToken(Tx& tx, const model::Token& token) {
  if (auto known = FindToken(tx.db, token.id)) return ports::TokenMade{std::move(*known), false};
  const std::size_t before = CountTokens(tx.db);
  if (before == 0 && token.role != model::Role::kAdmin) {
    return Fail(ErrorCode::kConflict,
                "the first token must have the role admin: once there is one, every request needs "
                "a token, and only an admin's can make more");
  }
  // The new row follows in the same transaction, so that the table is never empty again.
  tx.db.Run("DELETE FROM tokens WHERE revoked_ms <= ?1 OR expires_ms <= ?1",
            tx.now - limits::kTokenRecord);
  if (CountTokens(tx.db) >= limits::kTokens) {
    return Fail(ErrorCode::kRefused,
                fmt::format("the ledger holds {} tokens already", limits::kTokens));
  }
  ports::TokenMade made{token, true};
  made.token.created = tx.now;
  made.token.revoked.reset();
  tx.db.Run(
      "INSERT INTO tokens (id, hash, project, role, name, prefix, created_by, created_ms, "
      "expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
      token.id, token.hash, token.project, ToString(token.role), token.name, token.prefix,
      token.created_by, made.token.created, token.expires);
  return made;
}

std::optional<model::Token> RevokeToken(Tx& tx, const model::TokenId& id) {
  tx.db.Run("UPDATE tokens SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL", id, tx.now);
  return FindToken(tx.db, id);
}

}  // namespace vmonce::ledger
