// The rows of tokens.
#pragma once

#include <optional>
#include <vector>

#include "ledger/transaction.h"
#include "ports/token_store.h"

namespace vmonce::ledger {

std::vector<model::Token> Tokens(Db& db);

// As ports::TokenStore::CreateToken says.
Result<ports::TokenMade> CreateToken(Tx& tx, const model::Token& token);

std::optional<model::Token> RevokeToken(Tx& tx, const model::TokenId& id);

}  // namespace vmonce::ledger
