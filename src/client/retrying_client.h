// Calls of the API that are tried until their outcome is known, as long as trying again is safe and
// a budget of time allows.
//
// What makes a second try of a change safe is its idempotency key, so the caller keeps the key
// before the first call (client/intent_file.h) and hands it in.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/threads.h"
#include "client/problem.h"
#include "client/transport.h"

namespace vmonce::client {

struct ApiRequest {
  std::string method = "GET";
  std::string path;  // Encoded: "/v1/vms".
  std::vector<std::pair<std::string, std::string>> query;
  std::optional<std::string> body;
  std::string content_type = "application/json";  // Of the body.
  std::optional<std::string> key;                 // Unquoted.
  std::chrono::seconds prefer_wait{0};
  Milliseconds budget{};  // For all tries and the waits between them.
};

enum class CallEnd {
  kAnswered,     // An answer that another try would not better: success or refusal.
  kGaveUp,       // No such answer, and no further try is allowed.
  kInterrupted,  // Stopped by the caller.
};

struct CallResult {
  CallEnd end = CallEnd::kGaveUp;
  std::optional<HttpResponse> response;  // Of the last try, if it had one.
  boost::json::value json;               // Its body, when that is JSON.
  std::optional<Error> error;            // Of the last try, if it had no response.
  int tries = 0;
  // Some try may have arrived without its answer coming back.
  bool may_have_happened = false;

  bool IsSuccess() const {
    return end == CallEnd::kAnswered && response && response->status >= 200 &&
           response->status < 300;
  }
};

struct ClientOptions {
  std::string base_url;  // Of NormaliseBaseUrl().
  std::string token;     // Sent to base_url and nowhere else; "" for none.
  BackoffLimits backoff;
  Milliseconds attempt{};  // One try, besides what Prefer: wait asks.
  std::chrono::seconds retry_after_max{};
  int max_tries = 0;
};

// Why another try follows, and after which wait. For people.
struct RetryNotice {
  std::string cause;
  Milliseconds wait{};
  bool is_unreachable = false;  // Nothing was sent.
};

// The outcome of one try, as the retry rule sees it.
struct Try {
  bool is_repeatable = false;  // A read, a PUT, or a change that carries a key.
  const Error* error = nullptr;
  const HttpResponse* response = nullptr;  // One of the two is there.
};

// True for: no connection; a lost answer; 408; 429 and 5xx whose problem says `retryable` (and does
// not say that this key is spent); and 429, 500, 502, 503 and 504 of something that is not our API.
// Never for what is not repeatable, and never for a redirect.
bool IsWorthAnotherTry(const Try& outcome);

// The wait that a 429 or 503 asks for: of the Retry-After header (seconds; its date form is not
// used, since clocks differ) or of the problem. Within [0, max].
std::optional<std::chrono::seconds> AskedWait(const HttpResponse& response,
                                              std::chrono::seconds max);

// A Structured Field string (RFC 9651), so that any key of printable ASCII passes unchanged.
std::string QuoteKey(std::string_view key);

// Used by one thread at a time. What it is built from outlives it.
class RetryingClient {
 public:
  RetryingClient(Transport& transport, Clock& clock, Random& random, Threads& threads,
                 ClientOptions options);

  // `on_retry` is called before each wait.
  void OnRetry(std::function<void(const RetryNotice&)> on_retry) {
    on_retry_ = std::move(on_retry);
  }

  CallResult Call(const ApiRequest& request, std::stop_token stop);

  const std::string& base_url() const { return options_.base_url; }
  const ClientOptions& options() const { return options_; }

 private:
  HttpRequest Build(const ApiRequest& request, Milliseconds left) const;
  void TryOnce(const ApiRequest& request, Milliseconds left, std::stop_token stop,
               CallResult& result);
  // Nothing when no further try fits into `left`.
  std::optional<RetryNotice> NextWait(const CallResult& result, Milliseconds left);

  Transport& transport_;
  Clock& clock_;
  Random& random_;
  Threads& threads_;
  const ClientOptions options_;
  std::function<void(const RetryNotice&)> on_retry_;
};

}  // namespace vmonce::client
