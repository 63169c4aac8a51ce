#include "http/server.h"

#include <gtest/gtest.h>

#include "http/response_writer.h"
#include "http/server_fixture.h"

namespace vmonce::http {
namespace {

TEST_F(ServerTest, AnswersOneAfterAnotherOnOneConnection) {
  Start();
  RawClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    const Response response = client.Ask("GET", "/hello");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "\"hello\"");
    EXPECT_EQ(response.headers.Find("content-type"), "application/json");
    EXPECT_EQ(response.headers.Find("cache-control"), "no-store");
    EXPECT_EQ(response.headers.Find("x-content-type-options"), "nosniff");
    EXPECT_EQ(response.headers.Find("date").value_or("").size(), 29u);
    EXPECT_EQ(response.headers.Find("server"), std::nullopt);
  }
  EXPECT_EQ(client.Ask("POST", "/echo", "body").body, "body");
}

TEST_F(ServerTest, TellsTheHandlerWhoAsksForWhat) {
  Start();
  RawClient client(server_->port());
  const Response own = client.Ask("GET", "/about/a%20b");
  const std::string id(own.headers.Find("x-request-id").value_or("none"));
  EXPECT_EQ(own.body, "a b 127.0.0.1 " + id);
  client.Send("GET /about/1 HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: my-id_1.2\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "1 127.0.0.1 my-id_1.2");
  client.Send("GET /about/1 HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: <script>\r\n\r\n");
  EXPECT_EQ(client.Receive().body.find("script"), std::string::npos);
}

TEST_F(ServerTest, ClosesWhenAskedToAndAfterHttp10) {
  Start();
  RawClient asks(server_->port());
  asks.Send("GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(asks.Receive().headers.Find("connection"), "close");
  EXPECT_TRUE(asks.IsClosed());
  RawClient old(server_->port());
  old.Send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.Receive().status, 200);
  EXPECT_TRUE(old.IsClosed());
  RawClient keeps(server_->port());
  keeps.Send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(keeps.Receive().headers.Find("connection"), "keep-alive");
  EXPECT_EQ(keeps.Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInTheirOrder) {
  options_.pipelining_depth = 4;
  Start();
  RawClient client(server_->port());
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    const std::string body = std::to_string(i);
    bytes +=
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
  }
  ASSERT_TRUE(client.Send(bytes));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.Receive().body, std::to_string(i));
}

TEST_F(ServerTest, SendsAWrittenResponseAsTheOneThatItWasWrittenOf) {
  Start();
  RawClient client(server_->port());
  const auto ask = [&](std::string_view method, Answer answer) {
    EXPECT_TRUE(client.Send(std::string(method) + " /later HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_TRUE(Await([&] { return Pending() == 1; }));
    TakePending()[0](std::move(answer));
    return client.Receive();
  };
  // Copied behind its head, and too large for that.
  for (const std::size_t size : {std::size_t{5}, kLargeBody}) {
    Response response = JsonResponse(202, std::string(size, 'x'));
    response.headers.Add("Location", "/v1/operations/1");
    response.headers.Add("Date", "a handler's word");
    const WrittenPointer written = Write(response);
    ASSERT_NE(written, nullptr);
    const Response plain = ask("GET", std::move(response));
    for (int i = 0; i < 2; ++i) {
      const Response again = ask("GET", written);
      EXPECT_EQ(again.status, 202);
      EXPECT_EQ(again.body == plain.body, true);
      ASSERT_EQ(again.headers.size(), plain.headers.size());
      for (std::size_t line = 0; line < plain.headers.size(); ++line) {
        EXPECT_EQ(again.headers.name(line), plain.headers.name(line));
        const bool is_of_the_request =
            plain.headers.name(line) == "X-Request-Id" || plain.headers.name(line) == "Date";
        EXPECT_TRUE(is_of_the_request || again.headers.value(line) == plain.headers.value(line));
      }
    }
  }
  EXPECT_TRUE(WasObserved("GET /later 202"));
}

TEST_F(ServerTest, WritesNothingThatCouldBeginAnotherLine) {
  Response response;
  response.headers.Add("Location", "/a\r\nSet-Cookie: evil");
  EXPECT_EQ(Write(response), nullptr);
}

TEST_F(ServerTest, MakesAnAnswerOnlyWhereSomebodyIsThereForIt) {
  options_.stop_timeout = Milliseconds(50);
  Start();
  const auto later = [this](RawClient& client) {
    EXPECT_TRUE(client.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_TRUE(Await([&] { return Pending() == 1; }));
    return std::move(TakePending()[0]);
  };
  RawClient client(server_->port());
  later(client)([this] {
    Count("made");
    return JsonResponse(202, "\"made\"");
  });
  EXPECT_EQ(client.Receive().body, "\"made\"");
  later(client)([]() -> Response { return JsonResponse(200, std::string().substr(1)); });
  EXPECT_EQ(client.Receive().status, 500) << "a maker that throws";
  EXPECT_EQ(client.Ask("GET", "/hello").status, 200);
  {
    auto gone = std::make_unique<RawClient>(server_->port());
    const Responder responder = later(*gone);
    server_->Stop();
    responder([this] {
      Count("made");
      return Response();
    });
  }
  EXPECT_EQ(CountOf("made"), 1);
}

TEST_F(ServerTest, SendsEarlierAnswersWhileALaterOneIsPending) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\nGET /later HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /about/after HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "\"hello\"");
  ASSERT_TRUE(Await([&] { return Pending() == 1; }));
  EXPECT_TRUE(client.IsSilent(50));
  TakePending()[0](JsonResponse(202, "\"late\""));
  EXPECT_EQ(client.Receive().body, "\"late\"");
  EXPECT_TRUE(client.Receive().body.starts_with("after"));
}

TEST_F(ServerTest, AnswersFromAnyThreadInAnyOrder) {
  Start();
  constexpr std::size_t kClients = 64;
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<Responder> responders;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    clients[i]->Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(Await([&] { return Pending() == 1; }));
    responders.push_back(std::move(TakePending()[0]));
  }
  std::vector<std::unique_ptr<Thread>> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.push_back(threads_->Spawn("answers", [&responders, t](std::stop_token) {
      for (std::size_t i = kClients; i > 0; --i) {
        if (i % 4 == t) responders[i - 1](JsonResponse(200, std::to_string(i - 1)));
      }
    }));
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(clients[i]->Receive().body, std::to_string(i));
  }
  for (const auto& thread : threads) thread->Join();
}

TEST_F(ServerTest, AnswersForAHandlerThatDropsItsResponderOrThrows) {
  Start();
  RawClient client(server_->port());
  const Response dropped = client.Ask("POST", "/dropped", "x");
  EXPECT_EQ(dropped.status, 500);
  EXPECT_EQ(Code(dropped), "internal");
  EXPECT_EQ(client.Ask("GET", "/throws").status, 500);
  client.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return Pending() == 1; }));
  TakePending().clear();
  EXPECT_EQ(client.Receive().status, 500);
  EXPECT_EQ(client.Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTest, SendsNoHeaderThatWouldStartAnother) {
  Start();
  RawClient client(server_->port());
  const Response response = client.Ask("GET", "/split");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.headers.Find("set-cookie"), std::nullopt);
}

TEST_F(ServerTest, SurvivesClientsThatResetWhileTheirHandlerIsPending) {
  Start();
  for (int i = 0; i < 20; ++i) {
    RawClient client(server_->port());
    client.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(Await([&] { return Pending() == static_cast<std::size_t>(i) + 1; }));
    client.Reset();
  }
  // The answers of work that goes on go nowhere.
  for (const Responder& responder : TakePending()) {
    responder(NewResponse(200, "text/plain", std::string(100'000, 'x')));
  }
  RawClient other(server_->port());
  EXPECT_EQ(other.Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTest, ServesHeadByGetWithoutABody) {
  Start();
  RawClient client(server_->port());
  const Response head = client.Ask("HEAD", "/hello");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.Find("content-length"), "7");
  EXPECT_EQ(client.Ask("GET", "/hello").body, "\"hello\"");
  EXPECT_EQ(client.Ask("HEAD", "/nowhere").status, 404);
  EXPECT_EQ(client.Ask("GET", "/hello").body, "\"hello\"");
}

TEST_F(ServerTest, RefusesUnknownPathsAndMethods) {
  Start();
  RawClient client(server_->port());
  EXPECT_EQ(Code(client.Ask("GET", "/nowhere")), "route_not_found");
  EXPECT_EQ(client.Ask("GET", "/a/../hello").status, 404);
  EXPECT_EQ(client.Ask("GET", "//hello").status, 404);
  const Response wrong = client.Ask("DELETE", "/hello");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.Find("allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(Code(wrong), "method_not_allowed");
  EXPECT_EQ(wrong.headers.Find("content-type"), "application/problem+json");
}

TEST_F(ServerTest, TellsWhatAPathServes) {
  Start();
  RawClient client(server_->port());
  const Response echo = client.Ask("OPTIONS", "/echo");
  EXPECT_EQ(echo.status, 204);
  EXPECT_EQ(echo.headers.Find("allow"), "OPTIONS, POST");
  EXPECT_EQ(echo.headers.Find("content-length"), std::nullopt);
  EXPECT_EQ(client.Ask("OPTIONS", "*").status, 204);
  EXPECT_EQ(client.Ask("OPTIONS", "/nowhere").status, 404);
  EXPECT_EQ(client.Ask("GET", "*").status, 404);
  // A page of another origin asks its browser to ask this; the browser finds no permission.
  client.Send(
      "OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  const Response preflight = client.Receive();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.Find("access-control-allow-origin"), std::nullopt);
  EXPECT_EQ(client.Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTest, RefusesForeignHosts) {
  Start();
  const auto ask = [&](const std::string& target, const std::string& host) {
    RawClient client(server_->port());
    client.Send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.Receive();
  };
  for (const std::string host : {"localhost", "127.0.0.1", "[::1]:99", "LOCALHOST:8080"}) {
    EXPECT_EQ(ask("/hello", host).status, 200) << host;
  }
  for (const std::string host : {"evil.example", "localhost.evil.example", "10.0.0.1", "", "a b"}) {
    const Response response = ask("/hello", host);
    EXPECT_EQ(response.status, 421) << host;
    EXPECT_EQ(Code(response), "host_not_allowed");
  }
  EXPECT_EQ(ask("http://localhost/hello", "localhost").status, 200);
  EXPECT_EQ(ask("http://evil.example/hello", "localhost").status, 421);
  EXPECT_EQ(ask("http://localhost/hello", "evil.example").status, 421);
}

TEST_F(ServerTest, RefusesChangesFromForeignOrigins) {
  Start();
  RawClient client(server_->port());
  const auto ask = [&](const std::string& start, const std::string& origin) {
    client.Send(start + " HTTP/1.1\r\nHost: localhost\r\nOrigin: " + origin +
                "\r\nContent-Length: 0\r\n\r\n");
    return client.Receive();
  };
  EXPECT_EQ(Code(ask("POST /echo", "http://evil.example")), "origin_not_allowed");
  EXPECT_EQ(Code(ask("POST /echo", "null")), "origin_not_allowed");
  EXPECT_EQ(CountOf("echo"), 0);
  EXPECT_EQ(ask("POST /echo", "http://localhost:8080").status, 200);
  EXPECT_EQ(ask("GET /hello", "http://evil.example").status, 200);
}

TEST_F(ServerTest, ReadsChunkedBodies) {
  Start();
  RawClient client(server_->port());
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  client.Send(head + "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: a\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "hello world");
  for (const char byte : head + "1\r\na\r\n0\r\n\r\n") client.Send(std::string(1, byte));
  EXPECT_EQ(client.Receive().body, "a");
  EXPECT_EQ(client.Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTest, TellsAClientThatWaitsToContinue) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "
      "4\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 100);
  client.Send("body");
  EXPECT_EQ(client.Receive().body, "body");
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "
      "4\r\n\r\nbody");
  EXPECT_EQ(client.Receive().body, "body");
}

TEST_F(ServerTest, RefusesAWaitingClientBeforeItsBody) {
  Start();
  const auto ask = [&](const std::string& start, const std::string& length) {
    RawClient client(server_->port());
    client.Send(start + " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
                length + "\r\n\r\n");
    const Response response = client.Receive();
    EXPECT_TRUE(client.IsClosed());
    return response.status;
  };
  EXPECT_EQ(ask("POST /echo", "1048577"), 413);
  EXPECT_EQ(ask("POST /nowhere", "4"), 404);
  EXPECT_EQ(ask("POST /hello", "4"), 405);
  EXPECT_EQ(CountOf("echo"), 0);
}

TEST_F(ServerTest, DeliversALargeAnswerToASlowReader) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  RawClient other(server_->port());
  EXPECT_EQ(other.Ask("GET", "/hello").status, 200);
  EXPECT_EQ(client.Receive().body, std::string(kLargeBody, 'x'));
  EXPECT_EQ(client.Ask("GET", "/hello").status, 200);
}

TEST_F(ServerTest, TellsTheObserverTheRouteAndNeverThePath) {
  Start();
  RawClient client(server_->port());
  client.Ask("GET", "/about/1");
  client.Ask("GET", "/nowhere/2");
  client.Ask("BREW", "/hello");
  client.Send("malformed\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 400);
  EXPECT_TRUE(WasObserved("GET /about/{id} 200"));
  EXPECT_TRUE(WasObserved("GET (unmatched) 404"));
  EXPECT_TRUE(WasObserved("other (unmatched) 405"));
  EXPECT_TRUE(Await([&] { return WasObserved("other (malformed) 400"); }));
}

TEST_F(ServerTest, ClosesAfterAMalformedRequest) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Response response = client.Receive();
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.headers.Find("connection"), "close");
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(CountOf("echo"), 0);
}

TEST_F(ServerTest, SaysWhyItCannotListen) {
  Start();
  ServerOptions options;
  const ServerContext context{*clock_, *random_, *threads_, *logger_};
  options.port = server_->port();
  Server second(options, context, Router(), nullptr);
  const Status taken = second.Start();
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, ErrorCode::kConflict);
  options.address = "localhost";
  Server third(options, context, Router(), nullptr);
  const Status no_address = third.Start();
  ASSERT_FALSE(no_address.has_value());
  EXPECT_EQ(no_address.error().code, ErrorCode::kInvalid);
}

TEST_F(ServerTest, StopsGracefullyWithAPendingAnswer) {
  Start();
  RawClient idle(server_->port());
  EXPECT_EQ(idle.Ask("GET", "/hello").status, 200);
  RawClient fresh(server_->port());
  RawClient waiting(server_->port());
  waiting.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return Pending() == 1; }));
  const auto stopper = threads_->Spawn("stopper", [this](std::stop_token) { server_->Stop(); });
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_TRUE(waiting.IsSilent(50));
  TakePending()[0](JsonResponse(200, "\"late\""));
  const Response late = waiting.Receive();
  EXPECT_EQ(late.body, "\"late\"");
  EXPECT_EQ(late.headers.Find("connection"), "close");
  EXPECT_TRUE(waiting.IsClosed());
  waiting.Close();
  stopper->Join();
}

TEST_F(ServerTest, StopsInTimeThoughAnAnswerNeverComes) {
  options_.stop_timeout = Milliseconds(100);
  Start();
  RawClient waiting(server_->port());
  waiting.Send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(Await([&] { return Pending() == 1; }));
  const Instant begin = clock_->Monotonic();
  server_->Stop();
  EXPECT_LT(ElapsedMs(begin), 5000);
  EXPECT_TRUE(waiting.IsClosed());
  server_.reset();
  // A responder may outlive its server.
  TakePending()[0](JsonResponse(200, "1"));
}

TEST_F(ServerTest, StopWithoutStartDoesNothing) {
  Server never(options_, ServerContext{*clock_, *random_, *threads_, *logger_}, NewRouter(),
               nullptr);
  never.Stop();
  never.Stop();
}

}  // namespace
}  // namespace vmonce::http
