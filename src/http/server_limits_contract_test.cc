// What a client can take from the server, and where that ends.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "http/server_fixture.h"

namespace vmonce::http {
namespace {

using ServerLimits = ServerTest;

std::size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ServerLimits, RefusesALongHeader) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /hello HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(20'000, 'x'));
  const Response response = client.Receive();
  EXPECT_EQ(response.status, 431);
  EXPECT_EQ(Code(response), "header_too_large");
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(ServerLimits, RefusesALongBodyByItsLengthBeforeReadingIt) {
  Start();
  RawClient client(server_->port());
  client.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\r\n");
  const Response response = client.Receive();
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(Code(response), "body_too_large");
  EXPECT_TRUE(client.IsClosed());
  RawClient fits(server_->port());
  EXPECT_EQ(fits.Ask("POST", "/echo", std::string(1048576, 'x')).body.size(), 1048576u);
}

// report 91: an unbounded body was buffered whole. Here it is refused at its limit, and no handler
// hears of it.
TEST_F(ServerLimits, RefusesAnEndlessChunkedBodyInBoundedMemory) {
  Start();
  RawClient client(server_->port());
  client.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::size_t before = ResidentBytes();
  const std::string chunk = "8000\r\n" + std::string(0x8000, 'x') + "\r\n";
  // 1 GiB, if the server would take it.
  int sent = 0;
  while (sent < 32 * 1024 && client.Send(chunk)) ++sent;
  EXPECT_LT(sent, 2048);
  EXPECT_LT(ResidentBytes(), before + 48 * 1024 * 1024);
  EXPECT_EQ(CountOf("echo"), 0);
  EXPECT_TRUE(Await([&] { return WasObserved("POST (malformed) 413"); }));
}

TEST_F(ServerLimits, LetsAClientReadItsRefusalThoughItStillSends) {
  Start();
  RawClient client(server_->port());
  client.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n");
  ASSERT_TRUE(client.Send(std::string(2'000'000, 'x')));
  EXPECT_EQ(client.Receive().status, 413);
}

TEST_F(ServerLimits, HoldsAllBodiesTogetherBelowALimit) {
  options_.max_total_body_bytes = 100'000;
  Start();
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n";
  RawClient first(server_->port());
  first.Send(head + std::string(80'000, 'x'));
  RawClient second(server_->port());
  ASSERT_TRUE(second.Send(head + std::string(80'000, 'x')));
  // Which of the two goes beyond is chance; exactly one does.
  const bool is_second = !second.IsSilent(300);
  const Response refused = is_second ? second.Receive() : first.Receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(Code(refused), "overloaded");
  RawClient& other = is_second ? first : second;
  other.Send(std::string(10'000, 'x'));
  EXPECT_EQ(other.Receive().status, 200);
  RawClient third(server_->port());
  EXPECT_EQ(third.Ask("POST", "/echo", std::string(90'000, 'x')).status, 200);
}

TEST_F(ServerLimits, EndsASlowHeaderInTime) {
  options_.header_timeout = Milliseconds(200);
  Start();
  RawClient client(server_->port());
  const Instant begin = clock_->Monotonic();
  client.Send("GET /hello HTTP/1.1\r\n");
  // One byte now and then does not help.
  for (int i = 0; i < 3; ++i) {
    threads_->SleepFor(Milliseconds(40), {});
    client.Send("A");
  }
  const Response response = client.Receive();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(Code(response), "request_timeout");
  EXPECT_TRUE(client.IsClosed());
  EXPECT_GE(ElapsedMs(begin), 190);
  EXPECT_LT(ElapsedMs(begin), 3000);
}

TEST_F(ServerLimits, ClosesSilentAndIdleConnectionsWithoutAWord) {
  options_.header_timeout = Milliseconds(100);
  options_.idle_timeout = Milliseconds(100);
  Start();
  RawClient silent(server_->port());
  EXPECT_TRUE(silent.IsClosed());
  RawClient idle(server_->port());
  EXPECT_EQ(idle.Ask("GET", "/hello").status, 200);
  EXPECT_TRUE(idle.IsClosed());
}

TEST_F(ServerLimits, EndsASlowBodyInTime) {
  options_.body_timeout = Milliseconds(100);
  Start();
  RawClient client(server_->port());
  client.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_EQ(client.Receive().status, 408);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(CountOf("echo"), 0);
}

TEST_F(ServerLimits, NeverTimesOutAPendingAnswer) {
  options_.header_timeout = options_.body_timeout = options_.idle_timeout = Milliseconds(40);
  options_.write_timeout = Milliseconds(40);
  Start();
  RawClient client(server_->port());
  client.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return Pending() == 1; }));
  EXPECT_TRUE(client.IsSilent(300));
  TakePending()[0](JsonResponse(200, "1"));
  EXPECT_EQ(client.Receive().status, 200);
}

TEST_F(ServerLimits, DropsAClientThatDoesNotReadItsAnswer) {
  options_.write_timeout = Milliseconds(200);
  options_.max_connections = 1;
  Start();
  RawClient deaf(server_->port());
  deaf.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return WasObserved("GET /large 200"); }));
  // Its place becomes free.
  EXPECT_TRUE(Await([&] {
    RawClient other(server_->port());
    return other.Ask("GET", "/hello").status == 200;
  }));
}

TEST_F(ServerLimits, RefusesConnectionsBeyondTheirNumber) {
  options_.max_connections = 2;
  Start();
  RawClient one(server_->port());
  RawClient two(server_->port());
  one.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  two.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return Pending() == 2; }));
  RawClient surplus(server_->port());
  const Response response = surplus.Ask("GET", "/hello");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(Code(response), "overloaded");
  EXPECT_EQ(response.headers.Find("retry-after"), "1");
  EXPECT_TRUE(surplus.IsClosed());
  EXPECT_TRUE(Await([&] { return server_->Counts().refused == 1; }));
  for (const Responder& responder : TakePending()) responder(JsonResponse(200, "1"));
  EXPECT_EQ(one.Receive().status, 200);
  EXPECT_EQ(two.Receive().status, 200);
  RawClient next(server_->port());
  EXPECT_EQ(next.Ask("GET", "/hello").status, 200);
}

// Otherwise connections that are kept open and say nothing would keep everybody else out.
TEST_F(ServerLimits, WhoOwesARequestForTheLongestMakesRoom) {
  options_.max_connections = 4;
  Start();
  RawClient served(server_->port());
  served.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return Pending() == 1; }));
  RawClient slow(server_->port());
  slow.Send("GET /hello HT");
  RawClient idle(server_->port());
  EXPECT_EQ(idle.Ask("GET", "/hello").status, 200);
  RawClient silent(server_->port());
  // Each newcomer displaces the oldest: the slow one, the idle one, the silent one.
  RawClient first(server_->port());
  EXPECT_EQ(first.Ask("GET", "/hello").status, 200);
  EXPECT_TRUE(slow.IsClosed());
  RawClient second(server_->port());
  EXPECT_EQ(second.Ask("GET", "/hello").status, 200);
  EXPECT_TRUE(idle.IsClosed());
  RawClient third(server_->port());
  EXPECT_EQ(third.Ask("GET", "/hello").status, 200);
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_EQ(first.Ask("GET", "/hello").status, 200);
  TakePending()[0](JsonResponse(200, "1"));
  EXPECT_EQ(served.Receive().status, 200);
  EXPECT_EQ(server_->Counts().evicted, 3u);
  EXPECT_EQ(server_->Counts().refused, 0u);
}

TEST_F(ServerLimits, OneAddressHoldsAPartOfAllConnections) {
  options_.max_connections_per_address = 2;
  options_.counts_loopback = true;
  Start();
  RawClient one(server_->port());
  RawClient two(server_->port());
  EXPECT_EQ(one.Ask("GET", "/hello").status, 200);
  EXPECT_EQ(two.Ask("GET", "/hello").status, 200);
  RawClient surplus(server_->port());
  EXPECT_EQ(surplus.Ask("GET", "/hello").status, 503);
  two.Close();
  EXPECT_TRUE(Await([&] {
    RawClient next(server_->port());
    return next.Ask("GET", "/hello").status == 200;
  }));
  EXPECT_EQ(one.Ask("GET", "/hello").status, 200);
}

TEST_F(ServerLimits, RefusesBlockingWorkBeyondThreadsAndQueue) {
  options_.pool_threads = 1;
  options_.max_pool_queue = 1;
  Start();
  const std::string ask = "GET /blocking HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient runs(server_->port());
  runs.Send(ask);
  ASSERT_TRUE(Await([&] { return CountOf("blocking") == 1; }));
  RawClient one(server_->port());
  RawClient two(server_->port());
  one.Send(ask);
  two.Send(ask);
  const bool is_one = !one.IsSilent(300);
  const Response refused = is_one ? one.Receive() : two.Receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(Code(refused), "overloaded");
  EXPECT_EQ(refused.headers.Find("retry-after"), "1");
  // Inline routes do not wait for the pool.
  RawClient other(server_->port());
  EXPECT_EQ(other.Ask("GET", "/hello").status, 200);
  Release();
  EXPECT_EQ(runs.Receive().status, 200);
  EXPECT_EQ((is_one ? two : one).Receive().status, 200);
}

TEST_F(ServerLimits, ServesPromptlyBesideManyIdleAndManyWaitingClients) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  Start();
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 500; ++i) idle.push_back(std::make_unique<RawClient>(server_->port()));
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(std::make_unique<RawClient>(server_->port()));
    waiting.back()->Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  ASSERT_TRUE(Await([&] { return Pending() == 200; }));
  RawClient client(server_->port());
  const Instant begin = clock_->Monotonic();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.Ask("GET", "/hello").status, 200);
  EXPECT_LT(ElapsedMs(begin), 2000);
  for (const Responder& responder : TakePending()) responder(JsonResponse(200, "1"));
  for (const auto& one : waiting) EXPECT_EQ(one->Receive().status, 200);
  EXPECT_EQ(idle[250]->Ask("GET", "/hello").status, 200);
}

}  // namespace
}  // namespace vmonce::http
