// An HTTP/1.1 server: one thread does all the sockets, handlers answer when they can, and every
// resource that a client can take has a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/result.h"
#include "base/threads.h"
#include "http/host.h"
#include "http/router.h"
#include "http/tls_context.h"

namespace vmonce::http {

// Timeouts are kept to within a quarter of the shortest of them, at most 250 ms.
struct ServerOptions {
  // An IP address, and a port; 0 takes a free one.
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;
  // Whom this server answers for, as HostName gives them, beside the address that a client
  // connected to and the names of the certificate; other names get 421.
  std::vector<std::string> allowed_hosts = LoopbackHosts();
  // Nothing: all is spoken in clear.
  std::optional<TlsFiles> tls;

  std::size_t max_header_bytes = 16 * 1024;
  std::size_t max_body_bytes = 1024 * 1024;
  // All bodies that are held at once, from their first byte to their answer; beyond, 503.
  std::size_t max_total_body_bytes = 256 * 1024 * 1024;
  // Beyond, the connection that has owed a request for the longest is closed; when all are being
  // served, the next gets 503.
  std::size_t max_connections = 10000;
  // Of one address, or of one IPv6 network of 64 bits; beyond, 503. A reverse proxy is one address.
  // 0: any number.
  std::size_t max_connections_per_address = 0;
  // Whether that bound is one for loopback addresses, too.
  bool counts_loopback = false;
  // TLS handshakes that have begun; beyond, the oldest of them is ended.
  std::size_t max_handshakes = 512;
  // How many answers to pipelined requests may gather for one write. Requests of one connection run
  // one after another.
  std::size_t pipelining_depth = 16;

  // From accept to the end of a TLS handshake; then the connection is closed.
  Milliseconds handshake_timeout{10'000};
  // From the first byte (on a new connection: from accept) to the end of the header; then 408.
  Milliseconds header_timeout{10'000};
  // From there to the end of the body; then 408.
  Milliseconds body_timeout{30'000};
  // Between two requests; then the connection is closed.
  Milliseconds idle_timeout{75'000};
  // For writing what was answered; then the connection is dropped.
  Milliseconds write_timeout{30'000};
  // How long a closed connection is still read, so that the last answer is not lost to a reset.
  Milliseconds linger_timeout{1'000};
  // How long Stop waits for answers.
  Milliseconds stop_timeout{10'000};

  std::size_t pool_threads = 4;
  std::size_t max_pool_queue = 256;
};

struct ServerContext {
  // All outlive the server.
  Clock& clock;
  Random& random;
  Threads& threads;
  Logger& logger;
};

struct Observation {
  // The template, or kUnmatchedRoute or kMalformedRequest (dispatcher.h): few by design.
  std::string_view route;
  // MethodLabel().
  std::string_view method;
  int status;
  // From the whole request to its answer, without the network.
  std::chrono::nanoseconds duration;
};
// Called on the io thread once for each answer that is sent off: must not block.
using Observer = std::function<void(const Observation&)>;

// What happened to connections since the start, and how many there are now.
struct ConnectionCounts {
  std::uint64_t open = 0;
  std::uint64_t refused = 0;            // Got 503, or were closed at once.
  std::uint64_t evicted = 0;            // Owed a request, and made room.
  std::uint64_t failed_handshakes = 0;  // Plain text on a TLS port among them.
};

// Start, Stop and the destructor belong to one thread, which is not a handler's.
class Server final {
 public:
  // `observer` may be empty.
  Server(ServerOptions options, ServerContext context, Router router, Observer observer);
  // Stops.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Once. From its return on, connections are accepted. kInvalid: the address is none; kConflict:
  // it is taken; kRefused: it may not be had; or what TlsContext::Load says. After an error nothing
  // runs.
  Status Start();

  // Reads the TLS files again. New connections use what is there now; those that are open go on as
  // they are. After an error, which is TlsContext::Load's, everything stays as it was. Between
  // Start and Stop, by their thread; does nothing without TLS.
  Status ReloadTls();

  // When the certificate in use ends; nothing without TLS. Thread-safe, from Start on.
  std::optional<Time> CertificateExpires() const;
  // As of the last tick. Thread-safe.
  ConnectionCounts Counts() const;

  // Precondition: Start succeeded.
  std::uint16_t port() const;

  // When the io thread last came round, which it does several times a second, whatever the load.
  // Thread-safe.
  Instant LastTurn() const;

  // Stops accepting, closes idle connections, lets started requests be answered for `stop_timeout`,
  // then drops what is left. Queued handlers are dropped, running ones are waited for. Responders
  // may still be called afterwards; their answers go nowhere. Idempotent.
  void Stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace vmonce::http
