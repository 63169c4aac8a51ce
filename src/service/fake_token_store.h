// For tests: tokens in memory.
#pragma once

#include <map>

#include "base/clock.h"
#include "ports/token_store.h"

namespace vmonce::service {

class FakeTokenStore final : public ports::TokenStore {
 public:
  explicit FakeTokenStore(Clock& clock) : clock_(clock) {}

  Result<std::vector<model::Token>> Tokens() override {
    ++reads;
    if (is_down) return Fail(ErrorCode::kUnavailable, "down");
    std::vector<model::Token> tokens;
    for (const auto& [id, token] : tokens_) tokens.push_back(token);
    return tokens;
  }

  Result<ports::TokenMade> CreateToken(const model::Token& token) override {
    if (is_down) return Fail(ErrorCode::kUnavailable, "down");
    if (tokens_.empty() && token.role != model::Role::kAdmin) {
      return Fail(ErrorCode::kConflict, "the first token must have the role admin");
    }
    const auto [place, is_new] = tokens_.emplace(token.id, token);
    if (is_new) place->second.created = clock_.Now();
    return ports::TokenMade{place->second, is_new};
  }

  Result<std::optional<model::Token>> RevokeToken(const model::TokenId& id) override {
    if (is_down) return Fail(ErrorCode::kUnavailable, "down");
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) return std::nullopt;
    if (!found->second.revoked) found->second.revoked = clock_.Now();
    return found->second;
  }

  bool is_down = false;
  int reads = 0;

 private:
  Clock& clock_;
  std::map<model::TokenId, model::Token> tokens_;
};

}  // namespace vmonce::service
