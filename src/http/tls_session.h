// One client's TLS session as a machine that takes bytes and gives bytes. Knows no socket, so that
// Connection is written once for both kinds of stream.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "http/tls_context.h"

using SSL = struct ssl_st;
using BIO_METHOD = struct bio_method_st;

namespace vmonce::http {

// The first byte of every TLS session (RFC 8446 section 5.1).
inline constexpr char kTlsGreeting = 0x16;

// One client's session. The caller carries what Output() holds to the client, and what the client
// sends to Feed(). Used by one thread at a time; holds no more than what was fed and written.
class TlsSession final {
 public:
  enum class Step {
    kDone,        // The handshake is over; or bytes are there.
    kNeedsInput,  // Feed more.
    kEnded,       // The client will send nothing more, or what it sent is no TLS that is taken.
  };

  explicit TlsSession(std::shared_ptr<const TlsContext> context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  void Feed(std::string_view encrypted) { input_ += encrypted; }

  // Goes on with the handshake. After kEnded failure() says why, and Output() may hold an alert.
  Step Handshake();

  // Decrypts into `to`, which is not empty. `count` is 0 but with kDone. Precondition, here and
  // below: the handshake is done.
  struct Taken {
    Step step;
    std::size_t count;
  };
  Taken Read(std::span<char> to);
  // Encrypts all of it, which is not empty, into Output(). False when the session is broken.
  bool Write(std::string_view plain);
  // Tells the client that nothing more comes.
  void SayGoodbye();

  std::string_view Output() const { return std::string_view(output_).substr(sent_); }
  void ConsumeOutput(std::size_t count);

  // For the log.
  const std::string& failure() const { return failure_; }
  const TlsContext& context() const { return *context_; }

 private:
  friend struct SessionPipe;

  Step StepOf(int result);

  // Shared with the server and its other sessions: a reload replaces it for new ones only.
  const std::shared_ptr<const TlsContext> context_;
  BIO_METHOD* const pipe_method_;
  SSL* const session_;
  std::string input_;
  std::size_t taken_ = 0;
  std::string output_;
  std::size_t sent_ = 0;
  bool is_broken_ = false;
  std::string failure_;
};

}  // namespace vmonce::http
