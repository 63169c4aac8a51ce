#include "client/curl_transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/system.h"
#include "base/unique_fd.h"

namespace vmonce::client {
namespace {

// Listens on an ephemeral port of the loopback; what a connection gets is up to the test.
class LoopbackServer {
 public:
  LoopbackServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    socklen_t size = sizeof address;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }

  std::string Url() const { return fmt::format("http://127.0.0.1:{}", port_); }

  // Accepts one connection, reads until the head (and `body_bytes` more) has come, answers, closes.
  std::string ServeOnce(std::string_view answer, std::size_t body_bytes = 0) {
    const UniqueFd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string seen;
    char buffer[4096];
    while (true) {
      const auto head = seen.find("\r\n\r\n");
      if (head != std::string::npos && seen.size() >= head + 4 + body_bytes) break;
      const auto got = read(peer.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      seen.append(buffer, static_cast<std::size_t>(got));
    }
    EXPECT_EQ(write(peer.get(), answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    return seen;
  }

 private:
  UniqueFd listener_;
  int port_ = 0;
};

class CurlTransportTest : public testing::Test {
 protected:
  HttpRequest Request(std::string method) const {
    HttpRequest request;
    request.method = std::move(method);
    request.url = server_.Url() + "/v1/vms";
    request.deadline = Milliseconds(5'000);
    return request;
  }

  std::unique_ptr<Transport> transport_ =
      NewCurlTransport({"vmonce-test", Milliseconds(2'000), 1'000});
  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  LoopbackServer server_;
};

TEST_F(CurlTransportTest, SendsMethodHeadersAndBodyAndReadsTheAnswer) {
  std::string seen;
  const auto server = threads_->Spawn("server", [&](std::stop_token) {
    seen = server_.ServeOnce(
        "HTTP/1.1 202 Accepted\r\nLocation: /v1/operations/7\r\nContent-Length: 2\r\n\r\n{}", 4);
  });
  HttpRequest request = Request("POST");
  request.headers = {{"Idempotency-Key", "\"k\""}};
  request.body = "[12]";
  const auto answer = transport_->Send(request, {});
  server->Join();
  ASSERT_TRUE(answer) << answer.error().detail;
  EXPECT_EQ(answer->status, 202);
  EXPECT_EQ(answer->body, "{}");
  EXPECT_EQ(answer->Header("location"), "/v1/operations/7");
  EXPECT_TRUE(seen.starts_with("POST /v1/vms HTTP/1.1\r\n")) << seen;
  EXPECT_NE(seen.find("Idempotency-Key: \"k\"\r\n"), std::string::npos);
  EXPECT_TRUE(seen.ends_with("\r\n\r\n[12]"));
}

TEST_F(CurlTransportTest, DoesNotFollowARedirect) {
  const auto server = threads_->Spawn("server", [&](std::stop_token) {
    server_.ServeOnce("HTTP/1.1 307 No\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n");
  });
  const auto answer = transport_->Send(Request("GET"), {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 307);
}

TEST_F(CurlTransportTest, KnowsThatNothingWasSentWithoutAConnection) {
  HttpRequest request = Request("POST");
  {
    const LoopbackServer gone;
    request.url = gone.Url();
  }
  EXPECT_EQ(transport_->Send(request, {}).error().code, ErrorCode::kUnavailable);
}

TEST_F(CurlTransportTest, SaysUnknownWhenTheAnswerIsLost) {
  const auto server = threads_->Spawn("server", [&](std::stop_token) { server_.ServeOnce(""); });
  EXPECT_EQ(transport_->Send(Request("POST"), {}).error().code, ErrorCode::kUnknown);
}

TEST_F(CurlTransportTest, SaysUnknownWhenTheAnswerIsCutOff) {
  const auto server = threads_->Spawn("server", [&](std::stop_token) {
    server_.ServeOnce("HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{");
  });
  EXPECT_EQ(transport_->Send(Request("POST"), {}).error().code, ErrorCode::kUnknown);
}

TEST_F(CurlTransportTest, SaysUnknownWhenTheDeadlinePassesAfterSending) {
  HttpRequest request = Request("POST");
  request.deadline = Milliseconds(50);  // The listener's queue connects; nobody answers.
  EXPECT_EQ(transport_->Send(request, {}).error().code, ErrorCode::kUnknown);
}

TEST_F(CurlTransportTest, EndsAtOnceWhenStopped) {
  std::stop_source source;
  HttpRequest request = Request("POST");
  request.deadline = Milliseconds(60'000);
  const auto clock = NewSystemClock();
  const Instant begin = clock->Monotonic();
  const auto stopper = threads_->Spawn("stopper", [&](std::stop_token stop) {
    threads_->SleepFor(Milliseconds(30), stop);
    source.request_stop();
  });
  EXPECT_EQ(transport_->Send(request, source.get_token()).error().code, ErrorCode::kUnknown);
  EXPECT_LT(clock->Monotonic() - begin, std::chrono::seconds(30));
}

TEST_F(CurlTransportTest, RefusesAnAnswerPastItsBound) {
  const auto server = threads_->Spawn("server", [&](std::stop_token) {
    server_.ServeOnce("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2'000, 'x'));
  });
  EXPECT_EQ(transport_->Send(Request("GET"), {}).error().code, ErrorCode::kInvalid);
}

TEST_F(CurlTransportTest, RefusesWhatItCannotSpeak) {
  HttpRequest request = Request("GET");
  request.url = "ftp://127.0.0.1/";
  EXPECT_EQ(transport_->Send(request, {}).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace vmonce::client
