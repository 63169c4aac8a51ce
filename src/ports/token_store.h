// The door to the records of tokens. Calls block; errors are those of ports/ledger.h.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "model/token.h"

namespace vmonce::ports {

struct TokenMade {
  model::Token token;
  bool is_new = false;  // False: a record with that id was there, and is what is answered.
};

// Thread-safe.
class TokenStore {
 public:
  virtual ~TokenStore() = default;

  // Every record, ended ones too, in the order of their ids.
  virtual Result<std::vector<model::Token>> Tokens() = 0;

  // Inserts the record; the ledger sets `created`. Of ended records those older than
  // limits::kTokenRecord go, but never the last record: a ledger that had tokens once has one ever
  // after. kRefused: limits::kTokens stand already. kConflict: it would be the first of all, and is
  // no admin's; nobody could make another one then.
  virtual Result<TokenMade> CreateToken(const model::Token& token) = 0;

  // Sets `revoked`, once; the record as it is then. Absent: no such token.
  virtual Result<std::optional<model::Token>> RevokeToken(const model::TokenId& id) = 0;
};

}  // namespace vmonce::ports
