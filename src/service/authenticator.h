// From a bearer token to who asks: step 1 of the gate (protocol section 5). Answers from memory; a
// request never makes it read the ledger.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"
#include "base/threads.h"
#include "model/problem.h"
#include "ports/token_store.h"
#include "service/caller.h"

namespace vmonce::service {

// Thread-safe. Tokens are required when `always` says so, and once the ledger has a record of one,
// be it revoked or expired: what asked for credentials once never opens by itself.
class Authenticator {
 public:
  // What is borrowed outlives it.
  Authenticator(ports::TokenStore& store, Clock& clock, Threads& threads, bool always);

  // Reads all tokens. Nobody is let in before the first success, nor when the last one is older
  // than limits::kTokenStaleness. A token that is created or revoked is known from the return of
  // the next call on, whatever other calls were under way.
  Status Refresh();
  // Lets nobody in until the next success.
  void Distrust();

  // False while it is not known.
  bool AreTokensRequired() const;

  // `bearer` is what was presented; absent when there were no credentials. What was presented must
  // be right, also where nothing was required: nobody who names a project ends in another.
  // Problems: `unauthenticated`, `ledger_unavailable`.
  std::expected<std::shared_ptr<const Caller>, model::Problem> Authenticate(
      std::optional<std::string_view> bearer) const;

 private:
  struct Entry {
    model::Token token;
    std::shared_ptr<const Caller> caller;  // Shared with the requests that are under way.
  };
  struct HashOfHash {
    std::size_t operator()(const Digest& hash) const noexcept;
  };
  struct EqualHashes {
    bool operator()(const Digest& a, const Digest& b) const noexcept;
  };
  struct Tokens {
    std::unordered_map<Digest, Entry, HashOfHash, EqualHashes> by_hash;
    Instant read_at{};
  };

  std::shared_ptr<const Tokens> Current() const;

  ports::TokenStore& store_;
  Clock& clock_;
  const bool always_;
  // Shared with the requests that are under way.
  const std::shared_ptr<const Caller> operator_;
  std::unique_ptr<Monitor> refreshing_;  // Held over a read of the store: the newest one is last.
  std::unique_ptr<Monitor> monitor_;
  // Shared: replaced as a whole while others still look into the old one.
  std::shared_ptr<const Tokens> tokens_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::service
