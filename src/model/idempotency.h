// The rules of the key and the fingerprint: protocol sections 3, 4 and 6 as pure functions.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "model/operation.h"

namespace vmonce::model {

// A key as the client means it, unquoted. Never stored, never logged.
struct IdempotencyKey {
  std::string value;
  bool operator==(const IdempotencyKey&) const = default;
};

// `lines` are the values of all Idempotency-Key header lines, as received. A quoted Structured
// Field string (RFC 9651 section 3.3.3) and the bare token name the same key. A key with spaces
// must be quoted; white space around the value is none of it. No line at all is std::nullopt.
// kInvalid, with a cause that does not repeat the key, for two lines, an empty or longer key than
// limits::kKeyBytes, bytes outside printable ASCII, or junk after the quote, parameters included.
Result<std::optional<IdempotencyKey>> ParseKey(std::span<const std::string_view> lines);

Digest KeyHash(const IdempotencyKey& key);

// For people: the first characters and "…", at most limits::kKeyPrefixBytes characters in all;
// at most half of the key.
std::string RedactedPrefix(const IdempotencyKey& key);

inline constexpr int kFingerprintVersion = 1;

// What a request asks, apart from how it is spelled. All text is UTF-8 without U+0000, as
// ParseStrictJson would demand.
struct RequestImage {
  std::string method;
  std::string route;  // With path parameters filled in: "/v1/vms/0190…/start".
  std::vector<std::pair<std::string, std::string>>
      query;                // Decoded, without dry_run; put in order of the names here.
  boost::json::value body;  // As sent (ParseStrictJson's value); null when there is none.
};

// SHA-256 over the canonical form of [version, method, route, query, body].
Digest Fingerprint(const RequestImage& request);

// What is kept beside the fingerprint, so that a later version still can compare field by field:
// canonical JSON
// {"body":…,"method":…,"query":[[name,value],…],"route":…}. The caller has replaced secrets in the
// body by their MAC.
std::string CanonicalRequest(const RequestImage& request);

// What section 6 says of a key that is known.
enum class KnownAnswer {
  kInProgress,     // 202 with live state.
  kSucceeded,      // 200 with the live VM.
  kNewAttempt,     // Failed for a passing cause: a guarded transaction may start a new attempt.
  kFailedForGood,  // The stored problem again.
  kCancelled,      // 200 with state `deleted`.
  kExpired,        // 410.
  kMismatch,       // 422.
};

// `fingerprint` is of the record's fingerprint_version. A failed batch is a new attempt when one of
// its items may pass. Not known here: whether the user has deleted the VMs of a failed operation
// since (then the answer is kCancelled's).
KnownAnswer Decide(const Operation& record, const Digest& fingerprint);
KnownAnswer Decide(const Tombstone& record, const Digest& fingerprint);

}  // namespace vmonce::model
