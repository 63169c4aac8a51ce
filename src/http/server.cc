#include "http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "http/connection.h"

namespace vmonce::http {
namespace {

using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

// So that a flood of connections is no flood of lines.
constexpr Milliseconds kFullWarningEvery{10'000};
// Clients that are told 503 because all connections are taken; beyond, they are closed without a
// word.
constexpr std::size_t kMaxSurplus = 64;
// Out of file descriptors or memory: what helps is that others end.
constexpr Milliseconds kAcceptPause{100};
constexpr Milliseconds kShortestTick{5};
constexpr Milliseconds kLongestTick{250};

Milliseconds TickOf(const ServerOptions& options) {
  const Milliseconds shortest = std::min(
      {options.header_timeout, options.body_timeout, options.idle_timeout, options.write_timeout,
       options.linger_timeout, options.stop_timeout, options.handshake_timeout});
  return std::clamp(shortest / 4, kShortestTick, kLongestTick);
}

std::unexpected<Error> ListenError(const IoError& error, const ServerOptions& options) {
  const bool is_taken = error == asio::error::address_in_use;
  return Fail(is_taken ? ErrorCode::kConflict : ErrorCode::kRefused,
              fmt::format("cannot listen on {} port {}: {}", options.address, options.port,
                          error.message()));
}

// Whom a bound on addresses counts as one: a network of 64 bits is what one client is given (RFC
// 6177). Empty for whom it does not count.
std::string CountedAddress(const Socket& socket, const ServerOptions& options) {
  if (options.max_connections_per_address == 0) return "";
  IoError error;
  const asio::ip::address address = socket.remote_endpoint(error).address();
  if (error || (address.is_loopback() && !options.counts_loopback)) return "";
  if (address.is_v4()) return address.to_string();
  const asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_string();
  asio::ip::address_v6::bytes_type bytes = v6.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::make_address_v6(bytes).to_string();
}

}  // namespace

void IoLoop::Deliver(Exchange exchange, Answer answer) {
  if (context_.get_executor().running_in_this_thread()) {
    on_answer_(exchange, std::move(answer));
    return;
  }
  const MonitorLock lock(*monitor_);
  if (closed_) return;
  answers_.push_back({exchange, std::move(answer)});
  if (answers_.size() == 1) asio::post(context_, [this] { Drain(); });
}

void IoLoop::Drain() {
  std::vector<Delivery> answers;
  {
    const MonitorLock lock(*monitor_);
    answers.swap(answers_);
  }
  for (Delivery& delivery : answers) on_answer_(delivery.exchange, std::move(delivery.answer));
}

void IoLoop::Close() {
  std::vector<Delivery> dropped;
  const MonitorLock lock(*monitor_);
  closed_ = true;
  dropped.swap(answers_);
}

class Server::Core final {
 public:
  Core(ServerOptions options, ServerContext context, Router router, Observer observer)
      : options_(std::move(options)),
        context_(context),
        observer_(std::move(observer)),
        loop_(std::make_shared<IoLoop>(context.threads)),
        pool_(context.threads, options_.pool_threads, options_.max_pool_queue),
        dispatcher_(std::move(router), options_.allowed_hosts, pool_, context.logger),
        state_(options_, context_, loop_, dispatcher_, observer_),
        acceptor_(loop_->context()),
        accept_pause_(loop_->context()),
        tick_timer_(loop_->context()),
        last_turn_(context.clock.Monotonic()) {
    state_.abort = [this](std::uint64_t id) { Abort(id); };
    state_.request_id_prefix = fmt::format("{:016x}", context.random.Next());
    loop_->OnAnswer([this](Exchange exchange, Answer answer) {
      const auto found = connections_.find(exchange.connection);
      if (found == connections_.end()) return;
      found->second.connection->OnAnswer(exchange.request, std::move(answer));
    });
  }

  Status Start();
  Status ReloadTls();
  std::uint16_t port() const { return port_; }
  Instant LastTurn() const { return last_turn_.load(std::memory_order_relaxed); }
  std::optional<Time> CertificateExpires() const;
  ConnectionCounts Counts() const;
  void Stop();

 private:
  // A connection, and whom it counts for.
  struct Held {
    std::unique_ptr<Connection> connection;
    std::string counted_address;
  };

  Status LoadTls();
  Status Listen();
  Task<void> Accept();
  void Add(Socket socket);
  bool IsRoomFor(const std::string& counted_address);
  bool MakeRoom();
  void Abort(std::uint64_t id);
  void TellFull();
  void Remove(std::uint64_t id, const std::exception_ptr& error);
  Task<void> Tick();
  void BeginStop();

  const ServerOptions options_;
  const ServerContext context_;
  const Observer observer_;
  // Shared with responders.
  const std::shared_ptr<IoLoop> loop_;
  BlockingPool pool_;
  Dispatcher dispatcher_;
  ServerState state_;
  Acceptor acceptor_;
  Timer accept_pause_;
  Timer tick_timer_;
  std::uint16_t port_ = 0;
  std::unordered_map<std::uint64_t, Held> connections_;
  std::unordered_map<std::string, std::size_t> by_address_;
  std::size_t surplus_ = 0;
  Instant full_told_ = Instant::min();
  // What others may read at any time.
  std::atomic<std::int64_t> certificate_expires_ms_ = 0;
  std::atomic<std::uint64_t> open_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::uint64_t> evicted_ = 0;
  std::atomic<std::uint64_t> failed_handshakes_ = 0;
  std::uint64_t last_id_ = 0;
  Instant stop_deadline_ = kNever;
  std::atomic<Instant> last_turn_;
  std::unique_ptr<Thread> thread_;
};

Status Server::Core::Start() {
  CHECK(thread_ == nullptr);
  if (Status loaded = LoadTls(); !loaded) return loaded;
  if (Status listening = Listen(); !listening) return listening;
  const auto ended = [](const std::exception_ptr& error) { CHECK(error == nullptr); };
  asio::co_spawn(loop_->context(), Accept(), ended);
  asio::co_spawn(loop_->context(), Tick(), ended);
  thread_ = context_.threads.Spawn("http-io", [this](std::stop_token) { loop_->context().run(); });
  return {};
}

Status Server::Core::LoadTls() {
  if (!options_.tls) return {};
  Result<std::shared_ptr<const TlsContext>> loaded =
      TlsContext::Load(*options_.tls, context_.clock.Now());
  if (!loaded) return std::unexpected(loaded.error());
  certificate_expires_ms_ = ToUnixMs((*loaded)->expires());
  // The io thread's own, once there is one.
  if (!thread_) {
    state_.tls = std::move(*loaded);
  } else {
    asio::post(loop_->context(),
               [this, tls = std::move(*loaded)]() mutable { state_.tls = std::move(tls); });
  }
  return {};
}

Status Server::Core::ReloadTls() {
  CHECK(thread_ != nullptr);
  return LoadTls();
}

std::optional<Time> Server::Core::CertificateExpires() const {
  if (!options_.tls) return std::nullopt;
  return FromUnixMs(certificate_expires_ms_);
}

ConnectionCounts Server::Core::Counts() const {
  return {open_, refused_, evicted_, failed_handshakes_};
}

Status Server::Core::Listen() {
  IoError error;
  const auto address = asio::ip::make_address(options_.address, error);
  if (error) {
    return Fail(ErrorCode::kInvalid, fmt::format("not an IP address: {}", options_.address));
  }
  const asio::ip::tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(Acceptor::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  if (!error) return {};
  IoError ignored;
  acceptor_.close(ignored);
  return ListenError(error, options_);
}

Task<void> Server::Core::Accept() {
  while (!state_.stopping) {
    Socket socket(loop_->context());
    IoError error;
    auto token = Into(error);
    co_await acceptor_.async_accept(socket, token);
    if (state_.stopping) co_return;
    if (!error) {
      Add(std::move(socket));
    } else if (error != asio::error::connection_aborted) {
      context_.logger.Warning("http_accept_failed", {{"cause", error.message()}});
      accept_pause_.expires_after(kAcceptPause);
      IoError ignored;
      auto pause_token = Into(ignored);
      co_await accept_pause_.async_wait(pause_token);
    }
  }
}

void Server::Core::Add(Socket socket) {
  std::string address = CountedAddress(socket, options_);
  const bool is_surplus = !IsRoomFor(address);
  if (is_surplus) TellFull();
  if (is_surplus && surplus_ >= kMaxSurplus) return;
  const std::uint64_t id = ++last_id_;
  surplus_ += is_surplus ? 1 : 0;
  if (is_surplus) address.clear();
  if (!address.empty()) ++by_address_[address];
  auto connection = std::make_unique<Connection>(state_, std::move(socket), id, is_surplus);
  Connection& running = *connection;
  connections_.emplace(id, Held{std::move(connection), std::move(address)});
  asio::co_spawn(loop_->context(), running.Run(),
                 [this, id](const std::exception_ptr& error) { Remove(id, error); });
}

bool Server::Core::IsRoomFor(const std::string& counted_address) {
  if (!counted_address.empty()) {
    const auto found = by_address_.find(counted_address);
    const std::size_t held = found == by_address_.end() ? 0 : found->second;
    if (held >= options_.max_connections_per_address) return false;
  }
  return connections_.size() - surplus_ < options_.max_connections || MakeRoom();
}

// Looks at all of them, which takes less than accepting one does in the kernel: a few hundred
// microseconds for ten thousand, and only while all places are taken.
bool Server::Core::MakeRoom() {
  Connection* longest = nullptr;
  Instant since = kNever;
  for (const auto& [id, held] : connections_) {
    const std::optional<Instant> owing = held.connection->OwingSince();
    if (!owing || *owing >= since) continue;
    longest = held.connection.get();
    since = *owing;
  }
  if (longest == nullptr) return false;
  longest->Abort();
  ++evicted_;
  return true;
}

void Server::Core::Abort(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found != connections_.end()) found->second.connection->Abort();
}

void Server::Core::TellFull() {
  ++refused_;
  const Instant now = context_.clock.Monotonic();
  if (full_told_ != Instant::min() && now < full_told_ + kFullWarningEvery) return;
  full_told_ = now;
  context_.logger.Warning("http_connections_full",
                          {{"connections", connections_.size()}, {"refused", refused_.load()}});
}

void Server::Core::Remove(std::uint64_t id, const std::exception_ptr& error) {
  if (error) context_.logger.Error("http_connection_failed", {{"connection", id}});
  const auto found = connections_.find(id);
  surplus_ -= found->second.connection->is_surplus() ? 1 : 0;
  const auto counted = by_address_.find(found->second.counted_address);
  if (counted != by_address_.end() && --counted->second == 0) by_address_.erase(counted);
  connections_.erase(found);
  if (state_.stopping && connections_.empty()) tick_timer_.cancel();
}

// One timer for all deadlines: arming one per connection and phase would cost more than looking
// at all now and then.
Task<void> Server::Core::Tick() {
  while (!state_.stopping || !connections_.empty()) {
    tick_timer_.expires_after(TickOf(options_));
    IoError ignored;
    auto token = Into(ignored);
    co_await tick_timer_.async_wait(token);
    open_ = connections_.size();
    failed_handshakes_ = state_.failed_handshakes;
    const Instant now = context_.clock.Monotonic();
    last_turn_.store(now, std::memory_order_relaxed);
    for (const auto& [id, held] : connections_) {
      if (now >= stop_deadline_) held.connection->Abort();
      held.connection->OnTick(now);
    }
  }
}

void Server::Core::BeginStop() {
  state_.stopping = true;
  stop_deadline_ = context_.clock.Monotonic() + options_.stop_timeout;
  IoError ignored;
  acceptor_.close(ignored);
  accept_pause_.cancel();
  tick_timer_.cancel();
  for (const auto& [id, held] : connections_) held.connection->CloseIfIdle();
}

void Server::Core::Stop() {
  if (thread_) {
    asio::post(loop_->context(), [this] { BeginStop(); });
    thread_->Join();
    thread_.reset();
  }
  loop_->Close();
  pool_.Stop();
}

Server::Server(ServerOptions options, ServerContext context, Router router, Observer observer)
    : core_(std::make_unique<Core>(std::move(options), context, std::move(router),
                                   std::move(observer))) {}

Server::~Server() { core_->Stop(); }

Status Server::Start() { return core_->Start(); }

Status Server::ReloadTls() { return core_->ReloadTls(); }

std::optional<Time> Server::CertificateExpires() const { return core_->CertificateExpires(); }

ConnectionCounts Server::Counts() const { return core_->Counts(); }

std::uint16_t Server::port() const { return core_->port(); }

Instant Server::LastTurn() const { return core_->LastTurn(); }

void Server::Stop() { core_->Stop(); }

}  // namespace vmonce::http
