#include "client/retrying_client.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"
#include "client/url.h"

namespace vmonce::client {
namespace {

bool IsJson(const HttpResponse& response) {
  const auto type = response.Header("content-type").value_or("");
  return type.starts_with("application/json") || type.starts_with("application/problem+json");
}

std::string CauseOf(const CallResult& result) {
  if (result.error) return result.error->detail;
  const ApiProblem problem = ReadProblem(*result.response);
  return fmt::format("{} {}", result.response->status, problem.code);
}

}  // namespace

bool IsWorthAnotherTry(const Try& outcome) {
  if (!outcome.is_repeatable) return false;
  if (outcome.error != nullptr) {
    return outcome.error->code == ErrorCode::kUnavailable ||
           outcome.error->code == ErrorCode::kUnknown;
  }
  const int status = outcome.response->status;
  if (status == 408) return true;
  if (status < 500 && status != 429) return false;
  const ApiProblem problem = ReadProblem(*outcome.response);
  if (problem.is_document) return problem.is_retryable && problem.retry_same_key.value_or(true);
  return status == 429 || status == 500 || (status >= 502 && status <= 504);
}

std::optional<std::chrono::seconds> AskedWait(const HttpResponse& response,
                                              std::chrono::seconds max) {
  std::optional<std::chrono::seconds> asked = ReadProblem(response).retry_after;
  if (const auto header = response.Header("retry-after")) {
    unsigned long long value = 0;
    const auto [end, failure] =
        std::from_chars(header->data(), header->data() + header->size(), value);
    const bool is_whole = end == header->data() + header->size() && !header->empty();
    // A number too large for the type still says: very long.
    if (failure == std::errc::result_out_of_range) return max;
    if (failure == std::errc() && is_whole) {
      const auto bound = static_cast<unsigned long long>(max.count());
      asked = std::chrono::seconds(std::min(value, bound));
    }
  }
  if (!asked) return std::nullopt;
  return std::clamp(*asked, std::chrono::seconds(0), max);
}

std::string QuoteKey(std::string_view key) {
  std::string quoted = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

RetryingClient::RetryingClient(Transport& transport, Clock& clock, Random& random, Threads& threads,
                               ClientOptions options)
    : transport_(transport),
      clock_(clock),
      random_(random),
      threads_(threads),
      options_(std::move(options)) {}

CallResult RetryingClient::Call(const ApiRequest& request, std::stop_token stop) {
  const Instant end = clock_.Monotonic() + request.budget;
  const bool is_repeatable =
      request.method == "GET" || request.method == "PUT" || request.key.has_value();
  CallResult result;
  while (true) {
    const auto left = std::chrono::duration_cast<Milliseconds>(end - clock_.Monotonic());
    TryOnce(request, std::max(left, Milliseconds(1)), stop, result);
    if (stop.stop_requested() && !result.response) {
      result.end = CallEnd::kInterrupted;
      return result;
    }
    const Try outcome{is_repeatable, result.error ? &*result.error : nullptr,
                      result.response ? &*result.response : nullptr};
    if (!IsWorthAnotherTry(outcome)) {
      result.end = result.response ? CallEnd::kAnswered : CallEnd::kGaveUp;
      return result;
    }
    const auto notice =
        NextWait(result, std::chrono::duration_cast<Milliseconds>(end - clock_.Monotonic()));
    if (!notice) {
      result.end = CallEnd::kGaveUp;
      return result;
    }
    if (on_retry_) on_retry_(*notice);
    if (!threads_.SleepFor(notice->wait, stop)) {
      result.end = CallEnd::kInterrupted;
      return result;
    }
  }
}

HttpRequest RetryingClient::Build(const ApiRequest& request, Milliseconds left) const {
  HttpRequest out;
  out.method = request.method;
  out.url = JoinUrl(options_.base_url, request.path, request.query);
  out.headers.emplace_back("Accept", "application/json, application/problem+json;q=0.9, */*;q=0.1");
  if (!options_.token.empty())
    out.headers.emplace_back("Authorization", "Bearer " + options_.token);
  if (request.key) out.headers.emplace_back("Idempotency-Key", QuoteKey(*request.key));
  if (request.body) {
    out.headers.emplace_back("Content-Type", request.content_type);
    out.body = *request.body;
  }
  if (request.prefer_wait.count() > 0) {
    out.headers.emplace_back("Prefer", fmt::format("wait={}", request.prefer_wait.count()));
  }
  out.deadline = std::min(left, options_.attempt + request.prefer_wait);
  return out;
}

void RetryingClient::TryOnce(const ApiRequest& request, Milliseconds left, std::stop_token stop,
                             CallResult& result) {
  ++result.tries;
  result.response.reset();
  result.error.reset();
  result.json = nullptr;
  auto answer = transport_.Send(Build(request, left), stop);
  if (!answer) {
    result.may_have_happened |= answer.error().code == ErrorCode::kUnknown;
    result.error = answer.error();
    return;
  }
  if (IsJson(*answer)) {
    auto json = ParseStrictJson(answer->body);
    if (!json && answer->status < 300) {
      // A success whose text was cut off on its way is a lost answer.
      result.may_have_happened = true;
      result.error = Error{ErrorCode::kUnknown, "the answer did not arrive whole"};
      return;
    }
    if (json) result.json = std::move(*json);
  }
  result.response = std::move(*answer);
}

std::optional<RetryNotice> RetryingClient::NextWait(const CallResult& result, Milliseconds left) {
  if (result.tries >= options_.max_tries) return std::nullopt;
  RetryNotice notice;
  notice.cause = CauseOf(result);
  notice.is_unreachable = result.error && result.error->code == ErrorCode::kUnavailable;
  notice.wait = Backoff(result.tries, options_.backoff, random_);
  if (result.response) {
    if (const auto asked = AskedWait(*result.response, options_.retry_after_max)) {
      // Jitter on top of what was asked: those who were sent away together do not return together.
      notice.wait = *asked + Backoff(1, options_.backoff, random_);
    }
  }
  if (notice.wait >= left) return std::nullopt;
  return notice;
}

}  // namespace vmonce::client
