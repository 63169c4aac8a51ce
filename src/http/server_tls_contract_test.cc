// The server over TLS, spoken to by OpenSSL's own client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "http/server_fixture.h"
#include "http/tls_client.h"

namespace vmonce::http {
namespace {

using testing::HasSubstr;

class ServerTls : public ServerTest {
 protected:
  ServerTls() {
    files_.Put(authority_.Issue({.name = "first"}));
    options_.tls = files_.files();
  }

  void StartTls() {
    options_.tls = files_.files();
    Start();
  }
  TlsClient::Wish Wish() const { return {.authority = authority_.certificate(), .protocols = ""}; }
  TlsClient Connect() { return TlsClient(server_->port(), Wish()); }

  TestAuthority authority_;
  TestTlsFiles files_;
};

TEST_F(ServerTls, AnswersOverTls13And12) {
  StartTls();
  for (const int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    TlsClient::Wish wish = Wish();
    wish.max_version = version;
    wish.protocols = std::string("\x02h2\x08http/1.1");
    TlsClient client(server_->port(), wish);
    ASSERT_TRUE(client.is_open()) << client.failure();
    EXPECT_EQ(client.version(), version == TLS1_3_VERSION ? "TLSv1.3" : "TLSv1.2");
    EXPECT_EQ(client.protocol(), "http/1.1");
    EXPECT_EQ(client.Ask("GET", "/hello").body, "\"hello\"");
    const std::string body(1'000'000, 'b');
    EXPECT_EQ(client.Ask("POST", "/echo", body).body, body);
    EXPECT_EQ(client.Ask("GET", "/large").body, std::string(kLargeBody, 'x'));
    client.Send("GET /about/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(client.Receive().body, HasSubstr("1 127.0.0.1 "));
    EXPECT_TRUE(client.IsEnded());
  }
}

TEST_F(ServerTls, RefusesOldVersionsAndForeignProtocols) {
  StartTls();
  TlsClient::Wish old = Wish();
  old.max_version = TLS1_1_VERSION;
  EXPECT_FALSE(TlsClient(server_->port(), old).is_open());
  TlsClient::Wish foreign = Wish();
  foreign.protocols = "\x02h2";
  const TlsClient client(server_->port(), foreign);
  EXPECT_FALSE(client.is_open());
  EXPECT_THAT(client.failure(), HasSubstr("no application protocol"));
  EXPECT_EQ(Connect().Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTls, IsNotBelievedByWhoTrustsAnotherAuthority) {
  StartTls();
  const TestAuthority other("other");
  const TlsClient client(server_->port(), {.authority = other.certificate(), .protocols = ""});
  EXPECT_FALSE(client.is_open());
  EXPECT_THAT(client.failure(), HasSubstr("certificate verify failed"));
  EXPECT_TRUE(Await([&] { return server_->Counts().failed_handshakes == 1; }));
  EXPECT_EQ(Connect().Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTls, TellsAClientThatSpeaksInClear) {
  StartTls();
  RawClient client(server_->port());
  const Response response = client.Ask("POST", "/echo", "secret");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(Code(response), "tls_required");
  EXPECT_TRUE(client.IsClosed());
  RawClient junk(server_->port());
  junk.Send(std::string("\x80\x2e\x01\x00\x02", 5));
  EXPECT_TRUE(junk.IsClosed());
  RawClient cut(server_->port());
  cut.Send(std::string("\x16\x03\x01\xff\xff\xff\xff\xff\xff\xff", 10));
  EXPECT_EQ(cut.Receive().status, 0);
  EXPECT_EQ(CountOf("echo"), 0);
  EXPECT_EQ(Connect().Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTls, AsksClientsForACertificateOfTheirAuthority) {
  TestAuthority clients("clients");
  files_.PutClientCa(clients.certificate());
  StartTls();
  TlsClient::Wish wish = Wish();
  for (const int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    wish.max_version = version;
    wish.own = {};
    // In TLS 1.3 the client hears of it only with the answer.
    TlsClient without(server_->port(), wish);
    const bool is_answered = without.is_open() && without.Ask("POST", "/echo", "x").status != 0;
    EXPECT_FALSE(is_answered);
    EXPECT_THAT(without.failure(),
                testing::AnyOf(HasSubstr("certificate required"), HasSubstr("handshake failure")));
    wish.own = authority_.Issue({.name = "mallory"});
    TlsClient foreign(server_->port(), wish);
    EXPECT_FALSE(foreign.is_open() && foreign.Ask("POST", "/echo", "x").status != 0);
    EXPECT_THAT(foreign.failure(), HasSubstr("unknown ca"));
    EXPECT_EQ(CountOf("echo"), 0);
    wish.own = clients.Issue({.name = "alice"});
    EXPECT_EQ(TlsClient(server_->port(), wish).Ask("GET", "/hello").status, 200);
  }
}

TEST_F(ServerTls, ServesClientsWithoutACertificateWhereOneIsOptional) {
  TestAuthority clients("clients");
  files_.PutClientCa(clients.certificate());
  files_.files().is_client_required = false;
  StartTls();
  EXPECT_EQ(Connect().Ask("GET", "/hello").status, 200);
  TlsClient::Wish wish = Wish();
  wish.own = clients.Issue();
  EXPECT_EQ(TlsClient(server_->port(), wish).Ask("GET", "/hello").status, 200);
  wish.own = authority_.Issue();
  TlsClient foreign(server_->port(), wish);
  EXPECT_FALSE(foreign.is_open() && foreign.Ask("GET", "/hello").status != 0);
}

TEST_F(ServerTls, ReloadsUnderLoadAndDropsNobody) {
  StartTls();
  TlsClient open = Connect();
  EXPECT_EQ(open.Ask("GET", "/hello").status, 200);
  std::atomic<int> failures = 0;
  std::atomic<int> answers = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 2; ++i) {
    threads.push_back(threads_->Spawn("asks", [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        TlsClient client = Connect();
        for (int asked = 0; asked < 3; ++asked) {
          const int status = client.Ask("POST", "/echo", "body").status;
          ++(status == 200 ? answers : failures);
        }
      }
    }));
  }
  for (int round = 0; round < 10; ++round) {
    const int before = answers;
    const std::string name = "round-" + std::to_string(round);
    files_.Put(authority_.Issue({.name = name}));
    ASSERT_TRUE(server_->ReloadTls());
    EXPECT_EQ(Connect().server_name(), name);
    ASSERT_TRUE(Await([&] { return answers > before; }));
  }
  for (const auto& thread : threads) thread->RequestStop();
  for (const auto& thread : threads) thread->Join();
  EXPECT_EQ(failures, 0);
  // Who was there before any of them.
  EXPECT_EQ(open.Ask("GET", "/hello").status, 200);
  EXPECT_EQ(open.server_name(), "first");
}

TEST_F(ServerTls, KeepsTheOldCertificateWhenTheNewOneIsBad) {
  StartTls();
  const std::optional<Time> expires = server_->CertificateExpires();
  files_.Put(authority_.Issue({.name = "second", .begin_days = -9, .end_days = -1}));
  const Status expired = server_->ReloadTls();
  ASSERT_FALSE(expired);
  EXPECT_THAT(expired.error().detail, HasSubstr("expired"));
  TestTlsFiles::Write(files_.files().certificate, "half a fi");
  EXPECT_FALSE(server_->ReloadTls());
  EXPECT_EQ(Connect().server_name(), "first");
  EXPECT_EQ(server_->CertificateExpires(), expires);
  files_.Put(authority_.Issue({.name = "second", .end_days = 60}));
  EXPECT_TRUE(server_->ReloadTls());
  EXPECT_EQ(Connect().server_name(), "second");
  EXPECT_GT(server_->CertificateExpires(), expires);
}

TEST_F(ServerTls, DoesNotStartWithoutAGoodCertificate) {
  files_.Put(authority_.Issue({.begin_days = -9, .end_days = -1}));
  options_.tls = files_.files();
  Server server(options_, ServerContext{*clock_, *random_, *threads_, *logger_}, Router(), nullptr);
  const Status started = server.Start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().detail, HasSubstr("expired"));
}

TEST_F(ServerTls, EndsAHandshakeThatDoesNotCome) {
  options_.handshake_timeout = Milliseconds(100);
  StartTls();
  RawClient silent(server_->port());
  RawClient half(server_->port());
  half.Send(std::string("\x16\x03\x01\x02", 4));
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(half.IsClosed());
  EXPECT_EQ(Connect().Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTls, EndsTheOldestOfTooManyHandshakes) {
  options_.max_handshakes = 2;
  StartTls();
  std::vector<std::unique_ptr<RawClient>> halves;
  for (int i = 0; i < 20; ++i) {
    halves.push_back(std::make_unique<RawClient>(server_->port()));
    halves.back()->Send(std::string("\x16\x03\x01\x02", 4));
    EXPECT_EQ(Connect().Ask("GET", "/hello").status, 200);
  }
  for (int i = 0; i < 18; ++i) EXPECT_TRUE(halves[i]->IsClosed()) << i;
}

TEST_F(ServerTls, ServesTheNamesOfItsCertificate) {
  files_.Put(authority_.Issue({.names = "DNS:localhost,DNS:vm.example"}));
  StartTls();
  const auto ask = [&](const std::string& host, const std::string& origin) {
    TlsClient client = Connect();
    client.Send("POST /echo HTTP/1.1\r\nContent-Length: 1\r\nHost: " + host +
                "\r\nOrigin: https://" + origin + "\r\n\r\nx");
    return client.Receive().status;
  };
  EXPECT_EQ(ask("vm.example", "vm.example"), 200);
  EXPECT_EQ(ask("VM.example:443", "vm.example:443"), 200);
  EXPECT_EQ(ask("evil.example", "vm.example"), 421);
  EXPECT_EQ(ask("vm.example", "evil.example"), 403);
}

TEST_F(ServerTls, RefusesAnEndlessBodyAndALongHeader) {
  StartTls();
  TlsClient client = Connect();
  client.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "8000\r\n" + std::string(0x8000, 'x') + "\r\n";
  int sent = 0;
  while (sent < 2000 && client.Send(chunk)) ++sent;
  EXPECT_LT(sent, 2000);
  EXPECT_TRUE(Await([&] { return WasObserved("POST (malformed) 413"); }));
  TlsClient header = Connect();
  header.Send("GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(20'000, 'x'));
  EXPECT_EQ(header.Receive().status, 431);
}

// A client that always has more to say is not served alone.
TEST_F(ServerTls, ServesOthersBesideAClientThatNeverPauses) {
  StartTls();
  std::atomic<bool> is_asked = false;
  const auto greedy = threads_->Spawn("greedy", [&](const std::stop_token& stop) {
    TlsClient client = Connect();
    std::string many;
    for (int i = 0; i < 200; ++i) many += "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    while (!stop.stop_requested() && client.Send(many)) {
      is_asked = true;
      for (int i = 0; i < 200; ++i) EXPECT_EQ(client.Receive().status, 200);
    }
  });
  ASSERT_TRUE(Await([&] { return is_asked.load(); }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Connect().Ask("GET", "/hello").status, 200);
  greedy->RequestStop();
  greedy->Join();
}

TEST_F(ServerTls, StopsGracefully) {
  StartTls();
  TlsClient idle = Connect();
  EXPECT_EQ(idle.Ask("GET", "/hello").status, 200);
  TlsClient waiting = Connect();
  waiting.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return Pending() == 1; }));
  const auto stopper = threads_->Spawn("stopper", [this](std::stop_token) { server_->Stop(); });
  TakePending()[0](JsonResponse(200, "\"late\""));
  EXPECT_EQ(waiting.Receive().body, "\"late\"");
  EXPECT_TRUE(waiting.IsEnded());
  stopper->Join();
}

}  // namespace
}  // namespace vmonce::http
