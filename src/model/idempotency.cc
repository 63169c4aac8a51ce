#include "model/idempotency.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "model/limits.h"

namespace vmonce::model {
namespace {

constexpr char kQuote = '"';
constexpr char kEscape = '\\';

// The causes never repeat the key: error texts end in logs.
std::unexpected<Error> Invalid(std::string_view cause) {
  return Fail(ErrorCode::kInvalid, fmt::format("Idempotency-Key: {}", cause));
}

bool IsPrintable(char c) { return c >= 0x20 && c <= 0x7e; }

// RFC 9110 section 5.5: white space around a field's value is not part of it.
std::string_view Trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

// RFC 9651 section 4.2.5. Parameters (section 3.1.2) mean nothing for a key, so they are junk here.
Result<std::string> ParseQuoted(std::string_view text) {
  std::string value;
  std::size_t at = 1;
  for (; at < text.size() && text[at] != kQuote; ++at) {
    if (text[at] == kEscape) {
      ++at;
      if (at == text.size() || (text[at] != kQuote && text[at] != kEscape)) {
        return Invalid("a backslash in a quoted key may stand before a quote or a backslash only");
      }
    }
    if (!IsPrintable(text[at])) return Invalid("only printable ASCII is allowed");
    value.push_back(text[at]);
  }
  if (at >= text.size()) return Invalid("the closing quote is missing");
  if (at + 1 != text.size()) return Invalid("something follows the closing quote");
  return value;
}

Result<std::string> ParseBare(std::string_view text) {
  if (!std::ranges::all_of(text, IsPrintable)) return Invalid("only printable ASCII is allowed");
  if (text.contains(' ')) return Invalid("a key with spaces must be quoted");
  return std::string(text);
}

bool MayPass(const Operation& record) {
  const bool an_item_may_pass = std::ranges::any_of(record.items, [](const Item& item) {
    return item.phase == ItemPhase::kFailed && item.failure && item.failure->passing;
  });
  return an_item_may_pass || (record.failure && record.failure->passing);
}

// [[name,value],...], sorted by name. Values of one name keep their order: it may mean something.
std::string CanonicalQuery(const RequestImage& request) {
  if (request.query.empty()) return "[]";
  auto sorted = request.query;
  std::ranges::stable_sort(sorted, {}, &std::pair<std::string, std::string>::first);
  boost::json::array query;
  query.reserve(sorted.size());
  for (const auto& [name, value] : sorted) query.push_back(boost::json::array{name, value});
  return CanonicalJson(query);
}

std::string CanonicalText(const std::string& text) {
  std::string canonical;
  AppendJsonString(canonical, text);
  return canonical;
}

}  // namespace

Result<std::optional<IdempotencyKey>> ParseKey(std::span<const std::string_view> lines) {
  if (lines.empty()) return std::nullopt;
  if (lines.size() > 1) return Invalid("the header stands more than once");
  const std::string_view text = Trimmed(lines.front());
  if (text.empty()) return Invalid("the key is empty");
  Result<std::string> value = text.front() == kQuote ? ParseQuoted(text) : ParseBare(text);
  if (!value) return std::unexpected(std::move(value).error());
  if (value->empty()) return Invalid("the key is empty");
  if (value->size() > limits::kKeyBytes) {
    return Invalid(fmt::format("the key is longer than {} bytes", limits::kKeyBytes));
  }
  return IdempotencyKey{*std::move(value)};
}

Digest KeyHash(const IdempotencyKey& key) { return Sha256(key.value); }

std::string RedactedPrefix(const IdempotencyKey& key) {
  // Half of a short key stays hidden; one character is the ellipsis.
  const std::size_t shown = std::min(limits::kKeyPrefixBytes - 1, key.value.size() / 2);
  return key.value.substr(0, shown) + "…";
}

// The text is put together by hand from canonical parts, so that a large body is not copied into a
// larger value first. It is the canonical form of the array all the same.
Digest Fingerprint(const RequestImage& request) {
  return Sha256(fmt::format("[{},{},{},{},{}]", kFingerprintVersion, CanonicalText(request.method),
                            CanonicalText(request.route), CanonicalQuery(request),
                            CanonicalJson(request.body)));
}

std::string CanonicalRequest(const RequestImage& request) {
  return fmt::format(R"({{"body":{},"method":{},"query":{},"route":{}}})",
                     CanonicalJson(request.body), CanonicalText(request.method),
                     CanonicalQuery(request), CanonicalText(request.route));
}

KnownAnswer Decide(const Operation& record, const Digest& fingerprint) {
  if (record.fingerprint != fingerprint) return KnownAnswer::kMismatch;
  switch (record.state) {
    case OperationState::kAccepted:
    case OperationState::kRunning:
    case OperationState::kVerifying: return KnownAnswer::kInProgress;
    case OperationState::kSucceeded: return KnownAnswer::kSucceeded;
    case OperationState::kFailed:
      return MayPass(record) ? KnownAnswer::kNewAttempt : KnownAnswer::kFailedForGood;
    case OperationState::kCancelled: return KnownAnswer::kCancelled;
  }
  CHECK_MSG(false, "not an operation state");
}

KnownAnswer Decide(const Tombstone& record, const Digest& fingerprint) {
  return record.fingerprint == fingerprint ? KnownAnswer::kExpired : KnownAnswer::kMismatch;
}

}  // namespace vmonce::model
