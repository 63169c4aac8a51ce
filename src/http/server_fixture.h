// A server on a free loopback port with the handlers that the contract tests need. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/system.h"
#include "http/raw_client.h"
#include "http/server.h"

namespace vmonce::http {

class ServerTest : public testing::Test {
 protected:
  ServerTest()
      : clock_(NewSystemClock()),
        random_(NewSystemRandom()),
        threads_(NewSystemThreads()),
        logger_(NewNullLogger()),
        monitor_(threads_->NewMonitor()) {
    options_.port = 0;
  }
  ~ServerTest() override { Release(); }

  void Start() {
    server_ = std::make_unique<Server>(
        options_, ServerContext{*clock_, *random_, *threads_, *logger_}, NewRouter(),
        [this](const Observation& seen) {
          const MonitorLock lock(*monitor_);
          observed_.push_back(std::string(seen.method) + " " + std::string(seen.route) + " " +
                              std::to_string(seen.status));
        });
    const Status started = server_->Start();
    ASSERT_TRUE(started.has_value()) << started.error().detail;
  }

  Router NewRouter() {
    Router router;
    router.Add("GET", "/hello", HandlerMode::kInline, [](const Request&, const Responder& answer) {
      answer(JsonResponse(200, "\"hello\""));
    });
    router.Add("POST", "/echo", HandlerMode::kInline, [this](Request request, Responder answer) {
      Count("echo");
      answer(NewResponse(200, "text/plain", std::move(request.body)));
    });
    router.Add("GET", "/about/{id}", HandlerMode::kInline,
               [](const Request& request, const Responder& answer) {
                 answer(NewResponse(200, "text/plain",
                                    request.PathParam("id") + " " + request.remote_address + " " +
                                        request.request_id));
               });
    router.Add("GET", "/later", HandlerMode::kInline, [this](const Request&, Responder answer) {
      const MonitorLock lock(*monitor_);
      pending_.push_back(std::move(answer));
    });
    router.Add("POST", "/dropped", HandlerMode::kInline, [](const Request&, const Responder&) {});
    router.Add("GET", "/throws", HandlerMode::kInline,
               [](const Request&, const Responder&) { static_cast<void>(std::string().at(1)); });
    router.Add("GET", "/split", HandlerMode::kInline, [](const Request&, const Responder& answer) {
      Response response;
      response.headers.Add("Location", "/a\r\nSet-Cookie: evil");
      answer(std::move(response));
    });
    router.Add("GET", "/large", HandlerMode::kBlocking,
               [](const Request&, const Responder& answer) {
                 answer(NewResponse(200, "text/plain", std::string(kLargeBody, 'x')));
               });
    router.Add("GET", "/blocking", HandlerMode::kBlocking,
               [this](const Request&, const Responder& answer) {
                 Count("blocking");
                 MonitorLock lock(*monitor_);
                 while (!released_) monitor_->Wait();
                 answer(JsonResponse(200, "1"));
               });
    return router;
  }

  // Lets /blocking end.
  void Release() {
    const MonitorLock lock(*monitor_);
    released_ = true;
    monitor_->NotifyAll();
  }

  void Count(const std::string& what) {
    const MonitorLock lock(*monitor_);
    ++counts_[what];
  }
  int CountOf(const std::string& what) {
    const MonitorLock lock(*monitor_);
    return counts_[what];
  }
  std::size_t Pending() {
    const MonitorLock lock(*monitor_);
    return pending_.size();
  }
  std::vector<Responder> TakePending() {
    const MonitorLock lock(*monitor_);
    return std::exchange(pending_, {});
  }
  bool WasObserved(const std::string& what) {
    const MonitorLock lock(*monitor_);
    return std::ranges::find(observed_, what) != observed_.end();
  }

  // Waits for a state, at most as long as a client would.
  bool Await(const std::function<bool()>& state) {
    const Instant deadline = clock_->Monotonic() + Milliseconds(RawClient::kPatienceMs);
    while (!state()) {
      if (clock_->Monotonic() >= deadline) return false;
      threads_->SleepFor(Milliseconds(2), {});
    }
    return true;
  }

  static std::string Code(const Response& response) {
    const std::size_t begin = response.body.find("\"code\":\"");
    if (begin == std::string::npos) return "";
    const std::size_t end = response.body.find('"', begin + 8);
    return response.body.substr(begin + 8, end - begin - 8);
  }

  std::int64_t ElapsedMs(Instant since) {
    return std::chrono::duration_cast<Milliseconds>(clock_->Monotonic() - since).count();
  }

  static constexpr std::size_t kLargeBody = 8 * 1024 * 1024;

  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Random> random_;
  std::unique_ptr<Threads> threads_;
  std::unique_ptr<Logger> logger_;
  std::unique_ptr<Monitor> monitor_;
  ServerOptions options_;
  std::vector<Responder> pending_ GUARDED_BY(*monitor_);
  std::map<std::string, int> counts_ GUARDED_BY(*monitor_);
  std::vector<std::string> observed_ GUARDED_BY(*monitor_);
  bool released_ GUARDED_BY(*monitor_) = false;
  std::unique_ptr<Server> server_;
};

}  // namespace vmonce::http
