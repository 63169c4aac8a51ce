#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <exception>
#include <utility>

#include "base/check.h"

namespace vmonce::http {
namespace {

constexpr std::size_t kInitialInput = 4 * 1024;
// Below this a body is copied behind its head: cheaper than a second buffer.
constexpr std::size_t kCopiedBody = 16 * 1024;
// What is kept of an output buffer between requests.
constexpr std::size_t kKeptOutput = 64 * 1024;
// A client that still sends after its refusal is listened to for this much: enough for a body that
// was on its way.
constexpr std::size_t kMaxDrained = 8 * 1024 * 1024;
constexpr std::size_t kMaxRequestId = 64;
// Encrypted at once: four records of TLS. More would hold a large answer twice.
constexpr std::size_t kEncryptedAtOnce = 64 * 1024;
// A client whose bytes are always there already lets the others have their turn after so many.
constexpr int kReadsInARow = 8;

bool IsPlainRequestId(std::string_view id) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !id.empty() && id.size() <= kMaxRequestId && std::ranges::all_of(id, is_plain);
}

// An IPv4 client of a socket for both families is an IPv4 client.
asio::ip::address Unmapped(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

}  // namespace

void InputBuffer::Consume(std::size_t count) {
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

asio::mutable_buffer InputBuffer::Prepare() {
  if (end_ == bytes_.size() && begin_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == bytes_.size()) {
    CHECK(bytes_.empty() || bytes_.size() < limit_);
    bytes_.resize(bytes_.empty() ? std::min(kInitialInput, limit_)
                                 : std::min(bytes_.size() * 2, limit_));
  }
  return {bytes_.data() + end_, bytes_.size() - end_};
}

void InputBuffer::Shrink() {
  if (bytes_.size() > kInitialInput) bytes_ = std::vector<char>();
}

Connection::Connection(ServerState& state, Socket socket, std::uint64_t id, bool is_surplus)
    : state_(state),
      socket_(std::move(socket)),
      id_(id),
      is_surplus_(is_surplus),
      input_(state.options.max_header_bytes),
      parser_({state.options.max_header_bytes, state.options.max_body_bytes}),
      answer_signal_(state.loop->context()) {
  answer_signal_.expires_at(Timer::time_point::max());
  IoError ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  const asio::ip::tcp::endpoint peer = socket_.remote_endpoint(ignored);
  if (!ignored) remote_address_ = Unmapped(peer.address()).to_string();
  const asio::ip::tcp::endpoint here = socket_.local_endpoint(ignored);
  if (ignored) return;
  const asio::ip::address address = Unmapped(here.address());
  local_host_ = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
}

Connection::~Connection() { state_.body_bytes -= held_body_bytes_; }

Task<void> Connection::Run() {
  bool is_open = true;
  Enter(state_.tls ? Phase::kGreeting : Phase::kHeader);
  if (state_.tls) is_open = co_await Greet();
  if (is_open && is_surplus_) Refuse(Overloaded("Too many connections."));
  bool goes_on = is_open && !is_surplus_;
  while (goes_on) goes_on = co_await ServeOne();
  if (!aborted_ && !FlushNow()) co_await FlushRest();
  SayGoodbye();
  if (!aborted_) co_await Linger();
  IoError ignored;
  socket_.close(ignored);
}

Task<bool> Connection::Greet() {
  const std::size_t count = co_await ReadWire();
  if (count == 0) {
    aborted_ = true;
    co_return false;
  }
  const std::string_view greeting(state_.scratch.data(), count);
  if (greeting.front() != kTlsGreeting) {
    // Told in clear, since nothing else would be understood.
    if (IsToken(greeting.substr(0, 1))) Refuse(TlsRequired());
    ++state_.failed_handshakes;
    co_return false;
  }
  // Made at the first byte: whoever connects and says nothing costs a socket only.
  tls_ = std::make_unique<TlsSession>(state_.tls);
  tls_->Feed(greeting);
  CountHandshake();
  const bool is_done = co_await ShakeHands();
  EndHandshake();
  if (is_done) {
    Enter(Phase::kHeader);
    co_return true;
  }
  ++state_.failed_handshakes;
  const std::string cause = tls_->failure().empty() ? "not in time" : tls_->failure();
  state_.context.logger.Debug("tls_handshake_failed",
                              {{"client", remote_address_}, {"cause", cause}});
  co_return false;
}

Task<bool> Connection::ShakeHands() {
  for (;;) {
    const TlsSession::Step step = tls_->Handshake();
    bool is_flushed = FlushNow();
    if (!is_flushed) is_flushed = co_await FlushRest();
    if (!is_flushed || step == TlsSession::Step::kEnded) co_return false;
    if (step == TlsSession::Step::kDone) co_return true;
    const std::size_t count = co_await ReadWire();
    if (count == 0) {
      aborted_ = true;
      co_return false;
    }
    tls_->Feed({state_.scratch.data(), count});
  }
}

// A handshake takes a few round trips. When there are too many, the oldest is the likeliest to lead
// nowhere, so it makes room: half-open ones keep nobody out.
void Connection::CountHandshake() {
  if (state_.handshakes.size() >= state_.options.max_handshakes) {
    const std::uint64_t oldest = *state_.handshakes.begin();
    state_.handshakes.erase(oldest);
    state_.abort(oldest);
  }
  state_.handshakes.insert(id_);
}

void Connection::EndHandshake() { state_.handshakes.erase(id_); }

Task<bool> Connection::ServeOne() {
  const Read read = co_await ReadRequest();
  if (read == Read::kGone) aborted_ = true;
  if (read != Read::kWhole) co_return false;
  StartRequest();
  if (!answer_) {
    // Earlier answers must not wait for this one.
    bool is_flushed = FlushNow();
    if (!is_flushed) is_flushed = co_await FlushRest();
    if (is_flushed) co_await WaitForAnswer();
  }
  if (aborted_) co_return false;
  const bool keeps_alive = parser_.wants_keep_alive() && !state_.stopping;
  AppendAnswer(std::move(*answer_), keeps_alive);
  if (!keeps_alive) co_return false;
  if (gathered_answers_ < state_.options.pipelining_depth && large_body_.empty()) co_return true;
  bool is_flushed = FlushNow();
  if (!is_flushed) is_flushed = co_await FlushRest();
  co_return is_flushed;
}

Task<Connection::Read> Connection::ReadRequest() {
  parser_.Reset();
  plan_.reset();
  if (request_number_ > 0) Enter(input_.empty() ? Phase::kIdle : Phase::kHeader);
  if (input_.empty()) input_.Shrink();
  for (;;) {
    if (!input_.empty()) {
      const std::optional<Read> read = ParseInput();
      if (read) co_return *read;
    }
    bool is_flushed = FlushNow();
    if (!is_flushed) is_flushed = co_await FlushRest();
    if (!is_flushed) co_return Read::kGone;
    // After the flush: a client that pipelines gets its answers even if the server stops.
    if (state_.stopping && HasNoRequest()) co_return Read::kGone;
    const std::size_t count = co_await ReadSome();
    if (timed_out_ && !HasNoRequest()) {
      Refuse(RequestTimeout("The request did not arrive in time."));
      co_return Read::kRefused;
    }
    if (timed_out_ || count == 0) co_return Read::kGone;
  }
}

std::optional<Connection::Read> Connection::ParseInput() {
  if (phase_ == Phase::kIdle) Enter(Phase::kHeader);
  input_.Consume(parser_.Feed(input_.view()));
  CountBody();
  switch (parser_.state()) {
    case RequestParser::State::kHeader: return std::nullopt;
    case RequestParser::State::kRefused: Refuse(parser_.refusal()); return Read::kRefused;
    case RequestParser::State::kBody: break;
    case RequestParser::State::kComplete: break;
  }
  if (state_.body_bytes > state_.options.max_total_body_bytes) {
    Refuse(Overloaded("Too many large requests at once."));
    return Read::kRefused;
  }
  if (parser_.state() == RequestParser::State::kComplete) return Read::kWhole;
  return phase_ == Phase::kBody ? std::nullopt : BeginBody();
}

std::optional<Connection::Read> Connection::BeginBody() {
  Enter(Phase::kBody);
  parser_.request().remote_address = remote_address_;
  // What is refused anyhow needs no body, and takes no room that others need for theirs.
  plan_ = state_.dispatcher.Decide(parser_.request(), Arrival());
  if (plan_->answer) {
    // The client may send the body all the same, or not: the next request's beginning is unknown.
    StartRequest();
    AppendAnswer(std::move(*answer_), false);
    return Read::kRefused;
  }
  if (!parser_.wants_continue() || parser_.body_bytes() > 0) return std::nullopt;
  output_ += "HTTP/1.1 100 Continue\r\n\r\n";
  return std::nullopt;
}

Task<std::size_t> Connection::ReadSome() {
  if (tls_) {
    const std::size_t decrypted = co_await ReadDecrypted();
    co_return decrypted;
  }
  IoError error;
  auto token = Into(error);
  const asio::mutable_buffers_1 buffer(input_.Prepare());
  const std::size_t count = co_await socket_.async_read_some(buffer, token);
  if (error || aborted_) co_return 0;
  input_.Commit(count);
  co_return count;
}

Task<std::size_t> Connection::ReadDecrypted() {
  for (;;) {
    const asio::mutable_buffer room = input_.Prepare();
    const TlsSession::Taken taken = tls_->Read({static_cast<char*>(room.data()), room.size()});
    input_.Commit(taken.count);
    // An alert, or the answer to a new key.
    if (!tls_->Output().empty()) {
      bool is_flushed = FlushNow();
      if (!is_flushed) is_flushed = co_await FlushRest();
      if (!is_flushed) co_return 0;
    }
    if (taken.count > 0) co_return taken.count;
    if (taken.step == TlsSession::Step::kEnded) co_return 0;
    const std::size_t count = co_await ReadWire();
    if (count == 0) co_return 0;
    tls_->Feed({state_.scratch.data(), count});
  }
}

// Who waits holds no buffer: what is read is used before anybody else reads.
Task<std::size_t> Connection::ReadWire() {
  for (;;) {
    IoError error;
    if (++reads_in_a_row_ > kReadsInARow) {
      reads_in_a_row_ = 0;
      auto turn = Into(error);
      co_await asio::post(state_.loop->context(), turn);
    }
    const std::size_t count = socket_.read_some(asio::buffer(state_.scratch), error);
    if (!error && !aborted_) co_return count;
    if (aborted_ || error != asio::error::would_block) co_return 0;
    auto token = Into(error);
    co_await socket_.async_wait(Socket::wait_read, token);
    reads_in_a_row_ = 0;
    if (error || aborted_ || timed_out_) co_return 0;
  }
}

void Connection::StartRequest() {
  Request& request = parser_.request();
  request.remote_address = remote_address_;
  const std::optional<std::string_view> own_id = request.headers.Find("x-request-id");
  request_id_ = own_id && IsPlainRequestId(*own_id) ? std::string(*own_id) : NewRequestId();
  request.request_id = request_id_;
  is_head_ = request.method == "HEAD";
  method_label_ = MethodLabel(request.method);
  started_ = state_.context.clock.Monotonic();
  ++request_number_;
  answer_.reset();
  Dispatcher::Plan plan = plan_ ? std::move(*plan_) : state_.dispatcher.Decide(request, Arrival());
  plan_.reset();
  route_label_ = plan.route_label;
  if (plan.answer) {
    answer_ = std::move(*plan.answer);
    return;
  }
  Responder responder(state_.loop, Exchange{id_, request_number_});
  state_.dispatcher.Run(*plan.route, std::move(request), std::move(responder));
}

Task<void> Connection::WaitForAnswer() {
  Enter(Phase::kHandler);
  while (!answer_ && !aborted_) {
    IoError ignored;
    auto token = Into(ignored);
    co_await answer_signal_.async_wait(token);
  }
}

void Connection::OnAnswer(std::uint64_t request, Answer answer) {
  if (request != request_number_ || answer_ || aborted_) return;
  answer_ = std::move(answer);
  answer_signal_.cancel();
}

void Connection::Refuse(Problem problem) {
  request_id_ = NewRequestId();
  route_label_ = kMalformedRequest;
  is_head_ = parser_.request().method == "HEAD";
  method_label_ = MethodLabel(parser_.request().method);
  started_ = state_.context.clock.Monotonic();
  AppendResponse(ToResponse(problem), false);
}

void Connection::AppendAnswer(Answer answer, bool keeps_alive) {
  if (const auto* written = std::get_if<WrittenPointer>(&answer)) {
    AppendWritten(**written, keeps_alive);
  } else {
    AppendResponse(Made(std::move(answer)), keeps_alive);
  }
}

Response Connection::Made(Answer answer) {
  if (auto* response = std::get_if<Response>(&answer)) return std::move(*response);
  try {
    return std::get<ResponseMaker>(answer)();
  } catch (const std::exception& error) {
    // A bug, or memory ran out: as when a handler throws.
    state_.context.logger.Error("http_handler_threw",
                                {{"route", route_label_}, {"cause", error.what()}});
    return ToResponse(InternalError());
  }
}

void Connection::AppendResponse(Response response, bool keeps_alive) {
  if (!HasValidHeaders(response)) {
    state_.context.logger.Error("http_header_invalid", {{"route", route_label_}});
    response = ToResponse(InternalError());
  }
  AppendHead(output_, response, FactsOf(keeps_alive));
  AppendBody(response.status, std::move(response.body));
  Account(response.status);
}

void Connection::AppendWritten(const WrittenResponse& response, bool keeps_alive) {
  AppendHead(output_, response, FactsOf(keeps_alive));
  AppendBody(response.status, response.body);
  Account(response.status);
}

WireFacts Connection::FactsOf(bool keeps_alive) {
  WireFacts facts;
  facts.date = state_.date.At(state_.context.clock.Now());
  facts.request_id = request_id_;
  facts.is_http11 = parser_.is_http11();
  facts.keeps_alive = keeps_alive;
  return facts;
}

template <typename Body>
void Connection::AppendBody(int status, Body&& body) {
  if (is_head_ || HasNoBody(status)) return;
  if (body.size() <= kCopiedBody) {
    output_ += body;
  } else {
    large_body_ = std::forward<Body>(body);
  }
}

void Connection::Account(int status) {
  ++gathered_answers_;
  state_.body_bytes -= held_body_bytes_;
  held_body_bytes_ = 0;
  if (!state_.observer) return;
  const std::chrono::nanoseconds duration = state_.context.clock.Monotonic() - started_;
  state_.observer(Observation{route_label_, method_label_, status, duration});
}

void Connection::CountBody() {
  const std::size_t now = parser_.body_bytes();
  state_.body_bytes += now - held_body_bytes_;
  held_body_bytes_ = now;
}

std::string Connection::NewRequestId() {
  return fmt::format("{}-{:x}", state_.request_id_prefix, ++state_.request_ids);
}

bool Connection::FlushNow() {
  while (HasUnsent()) {
    const std::array<asio::const_buffer, 2> unsent = NextUnsent();
    IoError error;
    const std::size_t count = socket_.write_some(unsent, error);
    // A real error shows again in FlushRest.
    if (error) return false;
    Sent(count);
  }
  return true;
}

Task<bool> Connection::FlushRest() {
  const Phase phase = phase_;
  const Instant entered = entered_;
  const Instant deadline = deadline_;
  Enter(Phase::kWriting);
  while (HasUnsent()) {
    IoError error;
    auto token = Into(error);
    const std::array<asio::const_buffer, 2> unsent = NextUnsent();
    const std::size_t count = co_await asio::async_write(socket_, unsent, token);
    if (error || timed_out_ || aborted_) {
      aborted_ = true;
      co_return false;
    }
    Sent(count);
  }
  phase_ = phase;
  entered_ = entered;
  deadline_ = deadline;
  co_return true;
}

bool Connection::HasUnsent() const { return !output_.empty() || (tls_ && !tls_->Output().empty()); }

std::array<asio::const_buffer, 2> Connection::NextUnsent() {
  if (!tls_) return Plain();
  if (tls_->Output().empty()) Encrypt();
  const std::string_view encrypted = tls_->Output();
  return {asio::buffer(encrypted.data(), encrypted.size()), asio::const_buffer()};
}

std::array<asio::const_buffer, 2> Connection::Plain() const {
  const std::size_t from_head = std::min(sent_, output_.size());
  const std::size_t from_body = sent_ - from_head;
  return {asio::buffer(output_.data() + from_head, output_.size() - from_head),
          asio::buffer(large_body_.data() + from_body, large_body_.size() - from_body)};
}

void Connection::Encrypt() {
  const std::array<asio::const_buffer, 2> plain = Plain();
  const asio::const_buffer& first = plain[0].size() > 0 ? plain[0] : plain[1];
  const std::size_t count = std::min(first.size(), kEncryptedAtOnce);
  const bool is_written = tls_->Write({static_cast<const char*>(first.data()), count});
  // What a broken session cannot send is dropped with it.
  PlainSent(is_written ? count : output_.size() + large_body_.size() - sent_);
  if (!is_written) Abort();
}

void Connection::Sent(std::size_t count) {
  if (tls_) {
    tls_->ConsumeOutput(count);
  } else {
    PlainSent(count);
  }
}

void Connection::PlainSent(std::size_t count) {
  sent_ += count;
  if (sent_ < output_.size() + large_body_.size()) return;
  sent_ = 0;
  gathered_answers_ = 0;
  output_.clear();
  if (output_.capacity() > kKeptOutput) output_.shrink_to_fit();
  if (!large_body_.empty()) large_body_ = std::string();
}

// RFC 9112 section 9.6: closing at once while the client still sends would reset the connection,
// and with it the answer that the client has not read yet.
Task<void> Connection::Linger() {
  IoError error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) co_return;
  Enter(Phase::kLingering);
  std::size_t drained = 0;
  while (!timed_out_ && !aborted_ && drained < kMaxDrained) {
    const std::size_t count = co_await ReadWire();
    if (count == 0) co_return;
    drained += count;
  }
}

void Connection::OnTick(Instant now) {
  if (now < deadline_) return;
  deadline_ = kNever;
  timed_out_ = true;
  IoError ignored;
  socket_.cancel(ignored);
}

void Connection::CloseIfIdle() {
  if (!HasNoRequest() || !OwingSince()) return;
  SayGoodbye();
  Abort();
}

// So that a client over TLS can tell the end from a cut (RFC 8446 section 6.1).
void Connection::SayGoodbye() {
  if (!tls_ || HasUnsent()) return;
  tls_->SayGoodbye();
  FlushNow();
}

void Connection::Abort() {
  aborted_ = true;
  IoError ignored;
  socket_.close(ignored);
  answer_signal_.cancel();
}

void Connection::Enter(Phase phase) {
  const std::optional<Milliseconds> timeout = TimeoutOf(phase);
  phase_ = phase;
  timed_out_ = false;
  entered_ = state_.context.clock.Monotonic();
  deadline_ = timeout ? entered_ + *timeout : kNever;
}

std::optional<Milliseconds> Connection::TimeoutOf(Phase phase) const {
  const ServerOptions& options = state_.options;
  switch (phase) {
    case Phase::kGreeting: return options.handshake_timeout;
    case Phase::kIdle: return options.idle_timeout;
    case Phase::kHeader: return options.header_timeout;
    case Phase::kBody: return options.body_timeout;
    case Phase::kHandler: return std::nullopt;
    case Phase::kWriting: return options.write_timeout;
    case Phase::kLingering: return options.linger_timeout;
  }
  return std::nullopt;
}

std::optional<Instant> Connection::OwingSince() const {
  const bool owes =
      phase_ == Phase::kGreeting || phase_ == Phase::kIdle || phase_ == Phase::kHeader;
  if (!owes || aborted_ || is_surplus_) return std::nullopt;
  return entered_;
}

bool Connection::HasNoRequest() const {
  return parser_.state() == RequestParser::State::kHeader && input_.empty();
}

Dispatcher::Arrival Connection::Arrival() const {
  return {local_host_, tls_ ? &tls_->context() : nullptr};
}

}  // namespace vmonce::http
