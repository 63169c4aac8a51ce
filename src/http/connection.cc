#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <cstring>
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

bool IsPlainRequestId(std::string_view id) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !id.empty() && id.size() <= kMaxRequestId && std::ranges::all_of(id, is_plain);
}

bool HasValidHeaders(const Response& response) {
  for (std::size_t i = 0; i < response.headers.size(); ++i) {
    if (!IsValidHeader(response.headers.name(i), response.headers.value(i))) return false;
  }
  return true;
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
  if (!ignored) remote_address_ = peer.address().to_string();
}

Connection::~Connection() { state_.body_bytes -= held_body_bytes_; }

Task<void> Connection::Run() {
  Enter(Phase::kHeader);
  bool goes_on = !is_surplus_;
  if (is_surplus_) Refuse(Overloaded("Too many connections."));
  while (goes_on) goes_on = co_await ServeOne();
  if (!aborted_ && !FlushNow()) co_await FlushRest();
  if (!aborted_) co_await Linger();
  IoError ignored;
  socket_.close(ignored);
}

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
  AppendResponse(std::move(*answer_), keeps_alive);
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
  plan_ = state_.dispatcher.Decide(parser_.request());
  if (plan_->refusal) {
    // The client may send the body all the same, or not: the next request's beginning is unknown.
    StartRequest();
    AppendResponse(std::move(*answer_), false);
    return Read::kRefused;
  }
  if (!parser_.wants_continue() || parser_.body_bytes() > 0) return std::nullopt;
  output_ += "HTTP/1.1 100 Continue\r\n\r\n";
  return std::nullopt;
}

Task<std::size_t> Connection::ReadSome() {
  IoError error;
  auto token = Into(error);
  const asio::mutable_buffers_1 buffer(input_.Prepare());
  const std::size_t count = co_await socket_.async_read_some(buffer, token);
  if (error || aborted_) co_return 0;
  input_.Commit(count);
  co_return count;
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
  Dispatcher::Plan plan = plan_ ? std::move(*plan_) : state_.dispatcher.Decide(request);
  plan_.reset();
  route_label_ = plan.route_label;
  if (plan.refusal) {
    answer_ = std::move(plan.refusal);
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

void Connection::OnAnswer(std::uint64_t request, Response response) {
  if (request != request_number_ || answer_ || aborted_) return;
  answer_ = std::move(response);
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

void Connection::AppendResponse(Response response, bool keeps_alive) {
  if (!HasValidHeaders(response)) {
    state_.context.logger.Error("http_header_invalid", {{"route", route_label_}});
    response = ToResponse(InternalError());
  }
  WireFacts facts;
  facts.date = state_.date.At(state_.context.clock.Now());
  facts.request_id = request_id_;
  facts.is_http11 = parser_.is_http11();
  facts.keeps_alive = keeps_alive;
  AppendHead(output_, response, facts);
  ++gathered_answers_;
  state_.body_bytes -= held_body_bytes_;
  held_body_bytes_ = 0;
  if (!is_head_ && !HasNoBody(response.status)) {
    if (response.body.size() <= kCopiedBody) {
      output_ += response.body;
    } else {
      large_body_ = std::move(response.body);
    }
  }
  if (!state_.observer) return;
  const std::chrono::nanoseconds duration = state_.context.clock.Monotonic() - started_;
  state_.observer(Observation{route_label_, method_label_, response.status, duration});
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
  if (output_.empty()) return true;
  const std::array<asio::const_buffer, 2> unsent = Unsent();
  IoError error;
  const std::size_t count = socket_.write_some(unsent, error);
  // A real error shows again in FlushRest.
  if (error) return false;
  Sent(count);
  return output_.empty();
}

Task<bool> Connection::FlushRest() {
  const Phase phase = phase_;
  const Instant deadline = deadline_;
  Enter(Phase::kWriting);
  IoError error;
  auto token = Into(error);
  const std::array<asio::const_buffer, 2> unsent = Unsent();
  const std::size_t count = co_await asio::async_write(socket_, unsent, token);
  if (error || timed_out_ || aborted_) {
    aborted_ = true;
    co_return false;
  }
  Sent(count);
  phase_ = phase;
  deadline_ = deadline;
  co_return true;
}

std::array<asio::const_buffer, 2> Connection::Unsent() const {
  const std::size_t from_head = std::min(sent_, output_.size());
  const std::size_t from_body = sent_ - from_head;
  return {asio::buffer(output_.data() + from_head, output_.size() - from_head),
          asio::buffer(large_body_.data() + from_body, large_body_.size() - from_body)};
}

void Connection::Sent(std::size_t count) {
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
    input_.Consume(input_.view().size());
    const std::size_t count = co_await ReadSome();
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
  if (HasNoRequest() && (phase_ == Phase::kIdle || phase_ == Phase::kHeader)) Abort();
}

void Connection::Abort() {
  aborted_ = true;
  IoError ignored;
  socket_.close(ignored);
  answer_signal_.cancel();
}

void Connection::Enter(Phase phase) {
  const ServerOptions& options = state_.options;
  const auto timeout = [&]() -> std::optional<Milliseconds> {
    switch (phase) {
      case Phase::kIdle: return options.idle_timeout;
      case Phase::kHeader: return options.header_timeout;
      case Phase::kBody: return options.body_timeout;
      case Phase::kHandler: return std::nullopt;
      case Phase::kWriting: return options.write_timeout;
      case Phase::kLingering: return options.linger_timeout;
    }
    return std::nullopt;
  }();
  phase_ = phase;
  timed_out_ = false;
  deadline_ = timeout ? state_.context.clock.Monotonic() + *timeout : kNever;
}

bool Connection::HasNoRequest() const {
  return parser_.state() == RequestParser::State::kHeader && input_.empty();
}

}  // namespace vmonce::http
