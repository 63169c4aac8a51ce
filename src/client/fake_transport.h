// A server and a world made up for tests: scripted answers, a clock that only sleeping moves.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/threads.h"
#include "client/transport.h"

namespace vmonce::client {

class FakeClock final : public Clock {
 public:
  Time Now() override { return FromUnixMs(1'800'000'000'000) + elapsed_; }
  Instant Monotonic() override { return Instant(elapsed_); }
  void Advance(Milliseconds duration) { elapsed_ += duration; }
  Milliseconds Elapsed() const { return elapsed_; }

 private:
  Milliseconds elapsed_{0};
};

// The same bytes every time, unless counted: keys made from it differ.
class FakeRandom final : public Random {
 public:
  void Fill(std::span<std::byte> out) override {
    for (std::byte& b : out) b = static_cast<std::byte>(next_++ * 37);
  }

 private:
  std::uint8_t next_ = 1;
};

// Sleeping moves the clock, and nothing else happens. Spawning is not of this world.
class FakeThreads final : public Threads {
 public:
  explicit FakeThreads(FakeClock& clock) : clock_(clock) {}

  std::unique_ptr<Thread> Spawn(std::string, std::function<void(std::stop_token)>) override {
    CHECK_MSG(false, "no threads here");
    return nullptr;
  }
  void SpawnDetached(std::string, std::function<void()>) override {
    CHECK_MSG(false, "no threads here");
  }
  std::unique_ptr<Monitor> NewMonitor() override {
    CHECK_MSG(false, "no threads here");
    return nullptr;
  }
  bool SleepFor(Milliseconds duration, std::stop_token stop) override {
    if (on_sleep) on_sleep(duration);
    if (stop.stop_requested()) return false;
    clock_.Advance(duration);
    sleeps.push_back(duration);
    return true;
  }

  std::function<void(Milliseconds)> on_sleep;
  std::vector<Milliseconds> sleeps;

 private:
  FakeClock& clock_;
};

// Answers by `handler` when set, otherwise what was queued, in order.
class FakeTransport final : public Transport {
 public:
  using Answer = Result<HttpResponse>;

  Answer Send(const HttpRequest& request, std::stop_token) override {
    requests.push_back(request);
    if (handler) return handler(request);
    CHECK_MSG(!queue_.empty(), request.method + " " + request.url + " was not expected");
    Answer answer = std::move(queue_.front());
    queue_.pop_front();
    return answer;
  }

  void Queue(Answer answer) { queue_.push_back(std::move(answer)); }

  static HttpResponse Json(int status, std::string body, Headers headers = {}) {
    headers.emplace_back("content-type",
                         status < 400 ? "application/json" : "application/problem+json");
    return HttpResponse{status, std::move(headers), std::move(body)};
  }
  static Answer Refused() { return Fail(ErrorCode::kUnavailable, "connection refused"); }
  static Answer Lost() { return Fail(ErrorCode::kUnknown, "connection reset"); }

  std::function<Answer(const HttpRequest&)> handler;
  std::vector<HttpRequest> requests;

 private:
  std::deque<Answer> queue_;
};

// The value of a header line as sent, or "".
inline std::string SentHeader(const HttpRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace vmonce::client
