// What the operator does with tokens.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "model/idempotency.h"
#include "model/problem.h"
#include "ports/token_store.h"
#include "service/authenticator.h"
#include "service/caller.h"

namespace vmonce::service {

struct NewToken {
  Caller caller;  // Its role was checked.
  std::optional<model::IdempotencyKey> key;
  model::ProjectId project;
  model::Role role = model::Role::kMember;
  std::string name;
  std::optional<Time> expires;
};

struct CreatedToken {
  model::Token token;
  // Told once and never kept: empty when the key was known, since what it stood for cannot be had
  // again.
  std::string secret;
  bool is_replay = false;
};

// Thread-safe. Blocks on the ledger. What is borrowed outlives it.
class Tokens {
 public:
  Tokens(ports::TokenStore& store, Authenticator& authenticator, Clock& clock, Random& random,
         Logger& logger)
      : store_(store),
        authenticator_(authenticator),
        clock_(clock),
        random_(random),
        logger_(logger) {}

  // A key names one token for good: its id is made of it. `idempotency_key_reused` when that token
  // differs from what is asked; `quota_exceeded` when there are too many; `invalid_request` for a
  // first token that is no admin's.
  std::expected<CreatedToken, model::Problem> Create(const NewToken& wanted);
  // All, the newest first.
  std::expected<std::vector<model::Token>, model::Problem> List();
  // The record as it is then, revoked now or before. It counts at once. `token_not_found`.
  std::expected<model::Token, model::Problem> Revoke(const Caller& caller,
                                                     const model::TokenId& id);

 private:
  // Makes a change count before it is answered.
  void Publish();

  ports::TokenStore& store_;
  Authenticator& authenticator_;
  Clock& clock_;
  Random& random_;
  Logger& logger_;
};

// A record with a new secret. Shared with who makes tokens beside the service.
struct MintedToken {
  model::Token token;
  std::string secret;
};
MintedToken MintToken(const NewToken& wanted, Clock& clock, Random& random);

}  // namespace vmonce::service
