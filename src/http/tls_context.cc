#include "http/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "base/file.h"

namespace vmonce::http {
namespace {

// A chain of a few certificates is 10 KiB, a bundle of all public authorities 220 KiB.
constexpr std::size_t kMaxPemBytes = 1024 * 1024;

struct ContextDeleter {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
struct KeyDeleter {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct CertificateDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using OwnedContext = std::unique_ptr<SSL_CTX, ContextDeleter>;
using OwnedBio = std::unique_ptr<BIO, BioDeleter>;
using OwnedKey = std::unique_ptr<EVP_PKEY, KeyDeleter>;
using OwnedCertificate = std::unique_ptr<X509, CertificateDeleter>;

// The last thing that OpenSSL complained of.
std::string Reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "no reason given" : reason;
}

Result<std::string> ReadPem(std::string_view setting, const std::string& path) {
  Result<std::string> pem = ReadWholeFile(path, kMaxPemBytes);
  if (pem) return pem;
  return Fail(pem.error().code,
              fmt::format("{}: {}; mend the path, or let the service's user read it", setting,
                          pem.error().detail));
}

OwnedBio OverText(const std::string& text) {
  return OwnedBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Whoever may read the key can be this server.
Status CheckKeyMode(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) return std::unexpected(ErrnoError(errno, path));
  if ((facts.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) == 0) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("tls_key: {} may be read or changed by others (mode {:04o}); run chmod "
                          "o= g-w {}, and make a new key if others were there",
                          path, facts.st_mode & 07777u, path));
}

// What ended the reading of a list is its end, and no damage. Forgets the error.
bool IsEndOfPem() {
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return is_end;
}

// Never asks a terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

Status UseKey(SSL_CTX* context, const std::string& path) {
  Result<std::string> pem = ReadPem("tls_key", path);
  if (!pem) return std::unexpected(pem.error());
  if (Status safe = CheckKeyMode(path); !safe) return safe;
  const OwnedKey key(
      PEM_read_bio_PrivateKey(OverText(*pem).get(), nullptr, &NoPassphrase, nullptr));
  OPENSSL_cleanse(pem->data(), pem->size());
  if (!key) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("tls_key: {} holds no private key without a passphrase; write one as "
                            "PEM: openssl pkey -in OLD -out {}",
                            path, path));
  }
  // Both: the first says nothing when the two are of different kinds.
  const bool is_its_own =
      SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1;
  if (is_its_own) return {};
  return Fail(ErrorCode::kInvalid,
              fmt::format("tls_key: {} does not belong to the first certificate of tls_cert ({}); "
                          "name the key that the certificate was made for",
                          path, Reason()));
}

Status UseChain(SSL_CTX* context, const std::string& path) {
  const Result<std::string> pem = ReadPem("tls_cert", path);
  if (!pem) return std::unexpected(pem.error());
  const OwnedBio text = OverText(*pem);
  const OwnedCertificate own(PEM_read_bio_X509_AUX(text.get(), nullptr, &NoPassphrase, nullptr));
  if (!own) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("tls_cert: {} holds no certificate as PEM; put the "
                            "server's own first, then the intermediate ones",
                            path));
  }
  if (SSL_CTX_use_certificate(context, own.get()) != 1) {
    return Fail(ErrorCode::kInvalid, fmt::format("tls_cert: OpenSSL does not take {} ({}); make a "
                                                 "certificate with a P-256 or an RSA key of 2048 "
                                                 "bits or more",
                                                 path, Reason()));
  }
  for (;;) {
    OwnedCertificate next(PEM_read_bio_X509(text.get(), nullptr, &NoPassphrase, nullptr));
    if (!next) break;
    if (SSL_CTX_add0_chain_cert(context, next.get()) == 1) static_cast<void>(next.release());
  }
  if (IsEndOfPem()) return {};
  return Fail(ErrorCode::kInvalid, fmt::format("tls_cert: a certificate of {} is damaged; copy the "
                                               "whole chain there again",
                                               path));
}

// The C library's calendar from a certificate's; both are in UTC.
Time ToTime(const ASN1_TIME* text) {
  std::tm parts{};
  CHECK(ASN1_TIME_to_tm(text, &parts) == 1);
  const std::chrono::year_month_day date{
      std::chrono::year(parts.tm_year + 1900),
      std::chrono::month(static_cast<unsigned>(parts.tm_mon) + 1),
      std::chrono::day(static_cast<unsigned>(parts.tm_mday))};
  return std::chrono::sys_days(date) + std::chrono::hours(parts.tm_hour) +
         std::chrono::minutes(parts.tm_min) + std::chrono::seconds(parts.tm_sec);
}

std::string Day(Time time) {
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(time));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

Result<Time> CheckValidity(SSL_CTX* context, const std::string& path, Time now) {
  const X509* const own = SSL_CTX_get0_certificate(context);
  const ASN1_TIME* const begin = X509_get0_notBefore(own);
  const ASN1_TIME* const end = X509_get0_notAfter(own);
  if (ASN1_TIME_check(begin) != 1 || ASN1_TIME_check(end) != 1) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("tls_cert: {} has no readable dates; make a new certificate", path));
  }
  if (now < ToTime(begin)) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("tls_cert: {} is valid from {} on; set this machine's clock, or wait",
                            path, Day(ToTime(begin))));
  }
  if (now > ToTime(end)) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("tls_cert: {} expired on {}; put a new certificate there", path,
                            Day(ToTime(end))));
  }
  return ToTime(end);
}

Status UseClientCa(SSL_CTX* context, const TlsFiles& files) {
  const Result<std::string> pem = ReadPem("client_ca", files.client_ca);
  if (!pem) return std::unexpected(pem.error());
  const OwnedBio text = OverText(*pem);
  std::size_t count = 0;
  for (;; ++count) {
    const OwnedCertificate one(PEM_read_bio_X509(text.get(), nullptr, &NoPassphrase, nullptr));
    if (!one) break;
    // Both copy or count what they take; the names tell clients which certificate to send.
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()) != 1) break;
    if (SSL_CTX_add_client_CA(context, one.get()) != 1) break;
  }
  if (!IsEndOfPem() || count == 0) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("client_ca: {} is no list of certificates as PEM; put those there that "
                            "vouch for clients",
                            files.client_ca));
  }
  const int fail_without = files.is_client_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | fail_without, nullptr);
  return {};
}

// RFC 7301: a client that names protocols, and not ours, is told; one that names none is served.
int SelectProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* selected = nullptr;
  const int found =
      SSL_select_next_proto(&selected, out_size, kOurs, sizeof kOurs - 1, offered, offered_size);
  *out = selected;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

OwnedContext NewContext() {
  OwnedContext context(SSL_CTX_new(TLS_server_method()));
  CHECK(context != nullptr);
  CHECK(SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  // An idle client costs no record buffers; and who vouches for clients is not shown as our chain.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_alpn_select_cb(context.get(), &SelectProtocol, nullptr);
  return context;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::Load(const TlsFiles& files, Time now) {
  ERR_clear_error();
  OwnedContext context = NewContext();
  if (Status used = UseChain(context.get(), files.certificate); !used) {
    return std::unexpected(used.error());
  }
  if (Status used = UseKey(context.get(), files.key); !used) return std::unexpected(used.error());
  const Result<Time> expires = CheckValidity(context.get(), files.certificate, now);
  if (!expires) return std::unexpected(expires.error());
  if (!files.client_ca.empty()) {
    if (Status used = UseClientCa(context.get(), files); !used) {
      return std::unexpected(used.error());
    }
  }
  // tidy: allow raw-new: the constructor is private
  return std::shared_ptr<const TlsContext>(new TlsContext(context.release(), *expires));
}

TlsContext::~TlsContext() { SSL_CTX_free(handle_); }

bool TlsContext::Names(const std::string& host) const {
  X509* const own = SSL_CTX_get0_certificate(handle_);
  if (host.starts_with('[') && host.ends_with(']')) {
    return X509_check_ip_asc(own, host.substr(1, host.size() - 2).c_str(), 0) == 1;
  }
  if (X509_check_ip_asc(own, host.c_str(), 0) == 1) return true;
  // The names of the extension alone, as clients do (RFC 9525 section 6.3).
  const unsigned int flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  return X509_check_host(own, host.data(), host.size(), flags, nullptr) == 1;
}

}  // namespace vmonce::http
