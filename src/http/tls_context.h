// TLS as a server speaks it, by OpenSSL: what its files hold, checked before it is used.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

using SSL_CTX = struct ssl_ctx_st;

namespace vmonce::http {

struct TlsFiles {
  // PEM: the server's own certificate first, then the intermediate ones.
  std::string certificate;
  // PEM, without a passphrase, and not readable by everybody.
  std::string key;
  // PEM: who vouches for clients. Empty: clients are asked for no certificate.
  std::string client_ca;
  // With client_ca: whether a client without a certificate is refused.
  bool is_client_required = true;
};

// What was read from the files: TLS 1.2 and 1.3 with OpenSSL's defaults, no renegotiation, no
// resumption (so that a certificate that is taken away is at once), ALPN http/1.1. Immutable and
// thread-safe.
class TlsContext final {
 public:
  // Reads and checks everything: the key belongs to the certificate, which is valid at `now`.
  // kInvalid, kNotFound or kRefused with a text for the operator, which ends in the repair.
  static Result<std::shared_ptr<const TlsContext>> Load(const TlsFiles& files, Time now);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // The last moment at which the server's certificate is valid.
  Time expires() const { return expires_; }
  // Whether the certificate is for this name, as HostName gives it.
  bool Names(const std::string& host) const;

  SSL_CTX* handle() const { return handle_; }

 private:
  TlsContext(SSL_CTX* handle, Time expires) : handle_(handle), expires_(expires) {}

  SSL_CTX* const handle_;
  const Time expires_;
};

}  // namespace vmonce::http
