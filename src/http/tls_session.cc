#include "http/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace vmonce::http {

// What OpenSSL reads from and writes to: the session's own buffers, which are given back when they
// are empty. OpenSSL's memory BIO would keep each client's largest burst for good.
struct SessionPipe {
  static TlsSession& Of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int Read(BIO* bio, char* to, int size) {
    TlsSession& session = Of(bio);
    BIO_clear_retry_flags(bio);
    const std::size_t held = session.input_.size() - session.taken_;
    if (held == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t count = std::min(held, static_cast<std::size_t>(size));
    std::memcpy(to, session.input_.data() + session.taken_, count);
    session.taken_ += count;
    if (session.taken_ == session.input_.size()) {
      session.input_ = std::string();
      session.taken_ = 0;
    }
    return static_cast<int>(count);
  }

  static int Write(BIO* bio, const char* from, int size) {
    BIO_clear_retry_flags(bio);
    Of(bio).output_.append(from, static_cast<std::size_t>(size));
    return size;
  }

  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static int Create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  static BIO_METHOD* NewMethod() {
    BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "session");
    CHECK(made != nullptr);
    BIO_meth_set_read(made, &Read);
    BIO_meth_set_write(made, &Write);
    BIO_meth_set_ctrl(made, &Control);
    BIO_meth_set_create(made, &Create);
    return made;
  }
};

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context)
    : context_(std::move(context)),
      pipe_method_(SessionPipe::NewMethod()),
      session_(SSL_new(context_->handle())) {
  CHECK(session_ != nullptr);
  BIO* const pipe = BIO_new(pipe_method_);
  CHECK(pipe != nullptr);
  BIO_set_data(pipe, this);
  // Both ends are one BIO, which the session owns from here on.
  SSL_set_bio(session_, pipe, pipe);
  SSL_set_accept_state(session_);
}

TlsSession::~TlsSession() {
  SSL_free(session_);
  BIO_meth_free(pipe_method_);
}

TlsSession::Step TlsSession::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(session_);
  return result == 1 ? Step::kDone : StepOf(result);
}

TlsSession::Taken TlsSession::Read(std::span<char> to) {
  if (is_broken_) return {Step::kEnded, 0};
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_read_ex(session_, to.data(), to.size(), &count);
  if (result == 1) return {Step::kDone, count};
  return {StepOf(result), 0};
}

bool TlsSession::Write(std::string_view plain) {
  if (is_broken_) return false;
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_write_ex(session_, plain.data(), plain.size(), &count);
  // The output takes everything, so that a write is whole or broken.
  if (result != 1) StepOf(result);
  return result == 1;
}

void TlsSession::SayGoodbye() {
  if (is_broken_ || SSL_in_init(session_) == 1) return;
  ERR_clear_error();
  SSL_shutdown(session_);
}

void TlsSession::ConsumeOutput(std::size_t count) {
  sent_ += count;
  if (sent_ < output_.size()) return;
  output_ = std::string();
  sent_ = 0;
}

TlsSession::Step TlsSession::StepOf(int result) {
  const int error = SSL_get_error(session_, result);
  if (error == SSL_ERROR_WANT_READ) return Step::kNeedsInput;
  if (error != SSL_ERROR_ZERO_RETURN) {
    is_broken_ = true;
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    failure_ = reason == nullptr ? "the client hung up" : reason;
  }
  return Step::kEnded;
}

}  // namespace vmonce::http
