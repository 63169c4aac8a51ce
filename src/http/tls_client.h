// A TLS client for tests. Every wait is bounded.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "http/raw_client.h"
#include "http/test_authority.h"

namespace vmonce::http {

class TlsClient final {
 public:
  struct Wish {
    std::string authority;  // PEM: whom it trusts.
    std::string protocols;  // For ALPN, on the wire.
    int max_version = 0;
    Issued own{};
  };

  TlsClient(std::uint16_t port, const Wish& wish)
      : context_(SSL_CTX_new(TLS_client_method())), raw_(port) {
    // OpenSSL writes without MSG_NOSIGNAL.
    ::signal(SIGPIPE, SIG_IGN);
    const timeval patience{RawClient::kPatienceMs / 1000, 0};
    setsockopt(raw_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL_CTX_set_max_proto_version(context_.get(), wish.max_version);
    // Level 0, so that what is too old is refused by the server and not here.
    if (wish.max_version != 0) SSL_CTX_set_cipher_list(context_.get(), "ALL:@SECLEVEL=0");
    if (wish.max_version != 0) SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    const Bio authority = Over(wish.authority);
    X509* const trusted = PEM_read_bio_X509(authority.get(), nullptr, nullptr, nullptr);
    EXPECT_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), trusted), 1);
    X509_free(trusted);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (!wish.own.key.empty()) Use(wish.own);
    session_.reset(SSL_new(context_.get()));
    SSL_set1_host(session_.get(), "localhost");
    SSL_set_fd(session_.get(), raw_.fd());
    if (!wish.protocols.empty()) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(wish.protocols.data());
      SSL_set_alpn_protos(session_.get(), bytes, static_cast<unsigned>(wish.protocols.size()));
    }
    ERR_clear_error();
    is_open_ = SSL_connect(session_.get()) == 1;
    if (!is_open_) failure_ = Reason();
  }

  bool is_open() const { return is_open_; }
  const std::string& failure() const { return failure_; }
  std::string version() const { return SSL_get_version(session_.get()); }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(session_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  // The common name that the server showed.
  std::string server_name() const {
    char text[256] = "";
    X509* const shown = SSL_get0_peer_certificate(session_.get());
    X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, text, sizeof text);
    return text;
  }

  bool Send(std::string_view bytes) {
    return SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  // Status 0, and failure(), when none came whole.
  Response Receive() {
    while (held_.find("\r\n\r\n") == std::string::npos) {
      if (!ReadMore()) return Response{0, {}, {}};
    }
    const std::size_t head = held_.find("\r\n\r\n") + 4;
    const std::size_t length = held_.find("Content-Length: ");
    const std::size_t size = length < head ? std::stoul(held_.substr(length + 16)) : 0;
    while (held_.size() < head + size) {
      if (!ReadMore()) return Response{0, {}, {}};
    }
    Response response{std::stoi(held_.substr(9, 3)), {}, held_.substr(head, size)};
    held_.erase(0, head + size);
    return response;
  }
  Response Ask(std::string_view method, std::string_view path, std::string_view body = "") {
    std::string bytes(method);
    bytes.append(" ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\nContent-Length: ");
    bytes.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
    return Send(bytes) ? Receive() : Response{0, {}, {}};
  }
  // Whether the server says goodbye as TLS does, so that nothing was cut off.
  bool IsEnded() {
    char byte = 0;
    const int result = SSL_read(session_.get(), &byte, 1);
    return result <= 0 && SSL_get_error(session_.get(), result) == SSL_ERROR_ZERO_RETURN;
  }

 private:
  struct Deleter {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* session) const { SSL_free(session); }
    void operator()(BIO* bio) const { BIO_free(bio); }
  };
  using Bio = std::unique_ptr<BIO, Deleter>;

  static Bio Over(const std::string& text) {
    return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  }
  static std::string Reason() {
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    return reason == nullptr ? "closed" : reason;
  }
  void Use(const Issued& own) {
    X509* const shown = PEM_read_bio_X509(Over(own.certificate).get(), nullptr, nullptr, nullptr);
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(Over(own.key).get(), nullptr, nullptr, nullptr);
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), shown), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), key), 1);
    X509_free(shown);
    EVP_PKEY_free(key);
  }
  bool ReadMore() {
    char buffer[16384];
    ERR_clear_error();
    const int count = SSL_read(session_.get(), buffer, sizeof buffer);
    if (count <= 0) failure_ = Reason();
    if (count <= 0) return false;
    held_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  std::unique_ptr<SSL_CTX, Deleter> context_;
  RawClient raw_;
  std::unique_ptr<SSL, Deleter> session_;
  bool is_open_ = false;
  std::string failure_;
  std::string held_;
};

}  // namespace vmonce::http
