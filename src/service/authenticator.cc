#include "service/authenticator.h"

#include <cstring>

#include "model/auth_limits.h"

namespace vmonce::service {
namespace {

namespace limits = model::limits;

constexpr std::string_view kDefaultProject = "default";

std::unexpected<model::Problem> Unauthenticated(std::string detail) {
  model::Problem problem;
  problem.code = "unauthenticated";
  problem.detail = std::move(detail);
  return std::unexpected(std::move(problem));
}

std::unexpected<model::Problem> NotKnownNow() {
  model::Problem problem;
  problem.code = "ledger_unavailable";
  problem.detail =
      "The ledger does not answer, so nobody can be told from a stranger. Nothing happened; send "
      "the same request again.";
  problem.retry_after = std::chrono::seconds(2);
  return std::unexpected(std::move(problem));
}

}  // namespace

std::size_t Authenticator::HashOfHash::operator()(const Digest& hash) const noexcept {
  std::size_t first = 0;
  std::memcpy(&first, hash.data(), sizeof first);
  return first;
}

bool Authenticator::EqualHashes::operator()(const Digest& a, const Digest& b) const noexcept {
  const auto text = [](const Digest& digest) {
    return std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size());
  };
  return EqualInConstantTime(text(a), text(b));
}

Authenticator::Authenticator(ports::TokenStore& store, Clock& clock, Threads& threads, bool always)
    : store_(store),
      clock_(clock),
      always_(always),
      operator_(std::make_shared<const Caller>(Caller{
          model::ProjectId{std::string(kDefaultProject)}, model::Role::kAdmin, std::nullopt})),
      refreshing_(threads.NewMonitor()),
      monitor_(threads.NewMonitor()) {}

Status Authenticator::Refresh() {
  MonitorLock one_at_a_time(*refreshing_);
  auto fresh = std::make_shared<Tokens>();
  fresh->read_at = clock_.Monotonic();
  Result<std::vector<model::Token>> records = store_.Tokens();
  if (!records) return std::unexpected(std::move(records.error()));
  for (model::Token& token : *records) {
    auto caller = std::make_shared<const Caller>(Caller{token.project, token.role, token.id});
    const Digest hash = token.hash;
    fresh->by_hash.emplace(hash, Entry{std::move(token), std::move(caller)});
  }
  MonitorLock lock(*monitor_);
  tokens_ = std::move(fresh);
  return {};
}

void Authenticator::Distrust() {
  MonitorLock lock(*monitor_);
  tokens_.reset();
}

bool Authenticator::AreTokensRequired() const {
  if (always_) return true;
  const std::shared_ptr<const Tokens> tokens = Current();
  return tokens && !tokens->by_hash.empty();
}

std::expected<std::shared_ptr<const Caller>, model::Problem> Authenticator::Authenticate(
    std::optional<std::string_view> bearer) const {
  const std::shared_ptr<const Tokens> tokens = Current();
  if (!tokens) return NotKnownNow();
  if (!bearer) {
    if (!always_ && tokens->by_hash.empty()) return operator_;
    return Unauthenticated(
        tokens->by_hash.empty()
            ? "A token is required, and none exists yet. Where the service runs, and while it is "
              "stopped: vmonce token create --offline --role admin --project NAME."
            : "A token is required: send the header Authorization: Bearer TOKEN. Nothing was "
              "done.");
  }
  const auto found = tokens->by_hash.find(model::TokenHash(*bearer));
  if (found == tokens->by_hash.end()) {
    return Unauthenticated("The token is not one of this service. Nothing was done.");
  }
  const Entry& entry = found->second;
  if (entry.token.revoked) return Unauthenticated("The token was revoked. Nothing was done.");
  if (!entry.token.IsLive(clock_.Now())) {
    return Unauthenticated("The token has expired. Nothing was done.");
  }
  return entry.caller;
}

std::shared_ptr<const Authenticator::Tokens> Authenticator::Current() const {
  MonitorLock lock(*monitor_);
  if (!tokens_ || clock_.Monotonic() - tokens_->read_at > limits::kTokenStaleness) return nullptr;
  return tokens_;
}

}  // namespace vmonce::service
