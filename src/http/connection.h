// One client's connection: reads a request, has it answered, writes the answer, and again. Lives on
// the io thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "http/dispatcher.h"
#include "http/io_loop.h"
#include "http/request_parser.h"
#include "http/response_writer.h"
#include "http/server.h"
#include "http/tls_session.h"

namespace vmonce::http {

// What all connections of a server share; io thread only.
struct ServerState {
  ServerState(const ServerOptions& o, const ServerContext& c, std::shared_ptr<IoLoop> l,
              Dispatcher& d, const Observer& ob)
      : options(o), context(c), loop(std::move(l)), dispatcher(d), observer(ob) {}

  const ServerOptions& options;
  const ServerContext& context;
  // Shared with responders.
  const std::shared_ptr<IoLoop> loop;
  Dispatcher& dispatcher;
  const Observer& observer;
  DateText date;
  std::string request_id_prefix;
  std::uint64_t request_ids = 0;
  std::size_t body_bytes = 0;
  bool stopping = false;
  // For new connections; null: they speak in clear. Shared with the sessions that it began.
  std::shared_ptr<const TlsContext> tls;
  // What is read from any client before it is decrypted or dropped.
  std::vector<char> scratch = std::vector<char>(16 * 1024);
  // Connections within a TLS handshake, in the order in which they came.
  std::set<std::uint64_t> handshakes;
  std::uint64_t failed_handshakes = 0;
  std::function<void(std::uint64_t connection)> abort;
};

// Bytes that were read and not parsed. Grows from `initial` to `limit`.
class InputBuffer final {
 public:
  explicit InputBuffer(std::size_t limit) : limit_(limit) {}

  std::string_view view() const { return {bytes_.data() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  void Consume(std::size_t count);
  // Room for at least one byte. Precondition: fewer than `limit` bytes are held.
  asio::mutable_buffer Prepare();
  void Commit(std::size_t count) { end_ += count; }
  // Gives back what growing took. Precondition: empty.
  void Shrink();

 private:
  const std::size_t limit_;
  std::vector<char> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class Connection final {
 public:
  // A surplus connection only hears 503. `state` outlives this.
  Connection(ServerState& state, Socket socket, std::uint64_t id, bool is_surplus);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Ends when the connection does; this must live until then.
  Task<void> Run();

  bool is_surplus() const { return is_surplus_; }
  // An answer for another than the current request is dropped.
  void OnAnswer(std::uint64_t request, Answer answer);
  void OnTick(Instant now);
  // Closes if no request has begun.
  void CloseIfIdle();
  void Abort();
  // Since when the client owes a whole header, or a handshake; nothing while it is being served.
  // Who owes it longest makes room for others.
  std::optional<Instant> OwingSince() const;
  const std::string& remote_address() const { return remote_address_; }

 private:
  enum class Phase { kGreeting, kIdle, kHeader, kBody, kHandler, kWriting, kLingering };
  enum class Read {
    kWhole,    // A request is there.
    kRefused,  // A refusal is in the output; nothing more may be read.
    kGone,     // Nobody is there to answer.
  };

  // The TLS handshake. False when no request is to be read: a refusal is in the output, or nobody
  // is there.
  Task<bool> Greet();
  Task<bool> ShakeHands();
  void CountHandshake();
  void EndHandshake();
  // False when no further request is to be served.
  Task<bool> ServeOne();
  Task<Read> ReadRequest();
  // Parses what was read; nothing when more is needed.
  std::optional<Read> ParseInput();
  std::optional<Read> BeginBody();
  // How many bytes came into the input; 0 when none will.
  Task<std::size_t> ReadSome();
  Task<std::size_t> ReadDecrypted();
  // How many bytes came into the scratch; 0 when none will.
  Task<std::size_t> ReadWire();
  void StartRequest();
  Task<void> WaitForAnswer();

  void Refuse(Problem problem);
  void AppendAnswer(Answer answer, bool keeps_alive);
  void AppendResponse(Response response, bool keeps_alive);
  void AppendWritten(const WrittenResponse& response, bool keeps_alive);
  template <typename Body>
  void AppendBody(int status, Body&& body);
  // What every answer ends with.
  void Account(int status);
  // Precondition: it was not written before.
  Response Made(Answer answer);
  WireFacts FactsOf(bool keeps_alive);
  void CountBody();
  std::string NewRequestId();

  // Writes what the socket takes at once; true when nothing is left.
  bool FlushNow();
  // Writes the rest. False when the client is gone.
  Task<bool> FlushRest();
  bool HasUnsent() const;
  // What goes to the socket next. Precondition: HasUnsent.
  std::array<asio::const_buffer, 2> NextUnsent();
  std::array<asio::const_buffer, 2> Plain() const;
  void Encrypt();
  void Sent(std::size_t count);
  void PlainSent(std::size_t count);
  void SayGoodbye();
  Task<void> Linger();

  void Enter(Phase phase);
  std::optional<Milliseconds> TimeoutOf(Phase phase) const;
  bool HasNoRequest() const;
  Dispatcher::Arrival Arrival() const;

  ServerState& state_;
  Socket socket_;
  const std::uint64_t id_;
  const bool is_surplus_;
  std::string remote_address_;
  // As a Host header would spell it.
  std::string local_host_;
  // Null while it speaks in clear.
  std::unique_ptr<TlsSession> tls_;

  Phase phase_ = Phase::kHeader;
  Instant entered_{};
  Instant deadline_ = kNever;
  bool timed_out_ = false;
  bool aborted_ = false;
  int reads_in_a_row_ = 0;

  InputBuffer input_;
  RequestParser parser_;

  // The current request.
  std::uint64_t request_number_ = 0;
  std::string request_id_;
  std::string_view route_label_;
  std::string_view method_label_;
  bool is_head_ = false;
  Instant started_{};
  std::size_t held_body_bytes_ = 0;
  // Decided when the header was whole and the body was not; else when all is there.
  std::optional<Dispatcher::Plan> plan_;
  std::optional<Answer> answer_;
  // Waits for the answer; never expires.
  Timer answer_signal_;

  std::string output_;
  // A body too large to be copied behind its head.
  std::string large_body_;
  std::size_t sent_ = 0;
  std::size_t gathered_answers_ = 0;
};

}  // namespace vmonce::http
