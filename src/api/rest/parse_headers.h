// Request headers that mean something to this face: the key, preferences, preconditions.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>

#include "base/clock.h"
#include "http/message.h"
#include "model/idempotency.h"
#include "model/problem.h"

namespace vmonce::rest {

template <typename T>
using Parsed = std::expected<T, model::Problem>;

// Absent when the request has none. Problem `invalid_idempotency_key`, which does not repeat it.
Parsed<std::optional<model::IdempotencyKey>> ParseKeyHeader(const http::HeaderList& headers);

// The seconds of `Prefer: wait=N` (RFC 7240), at most limits::kPreferWait; zero when absent. What
// is not understood is ignored, as section 2 there demands; of two, the first counts.
std::chrono::seconds ParsePrefer(const http::HeaderList& headers);

// Of Idempotency-First-Sent, an HTTP date; absent when the request has none. `invalid_request` for
// anything else, and for several.
Parsed<std::optional<Time>> ParseFirstSent(const http::HeaderList& headers);

// The row version of If-Match; absent for none and for "*", which every VM that is there matches. A
// tag that we never gave, and a weak one (RFC 9110 section 13.1.1), give kMatchesNothing.
// `invalid_request` for what is no entity tag, and for a list of several.
inline constexpr std::int64_t kMatchesNothing = -1;
Parsed<std::optional<std::int64_t>> ParseIfMatch(const http::HeaderList& headers);

// Whether If-None-Match names this version, compared weakly (RFC 9110 section 13.1.2).
// `invalid_request` for what is no list of entity tags.
Parsed<bool> IsKnownToClient(const http::HeaderList& headers, std::int64_t version);

// "\"7\"".
std::string EntityTag(std::int64_t version);

// What a change must say of its body: Content-Type application/json, in UTF-8 (415). A change
// without a body could be sent by any page that a browser shows: its Origin, if any, must be the
// host that it asks (403).
Parsed<void> CheckSender(const http::Request& request);

}  // namespace vmonce::rest
