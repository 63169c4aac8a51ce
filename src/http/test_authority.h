// A certificate authority for tests, with P-256 keys: made in a millisecond.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "base/temp_dir.h"
#include "http/tls_context.h"

namespace vmonce::http {

struct Issued {
  std::string certificate;
  std::string key;
};

class TestAuthority final {
 public:
  struct Wish {
    std::string name = "server";
    std::string names = "DNS:localhost,IP:127.0.0.1";
    int begin_days = -1;
    int end_days = 30;
  };

  explicit TestAuthority(const std::string& name = "authority")
      : key_(EVP_EC_gen("P-256")), own_(New({.name = name, .names = ""}, key_)) {
    Sign(own_.get());
  }

  std::string certificate() const { return Pem(own_.get()); }

  Issued Issue(const Wish& wish) {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate made = New(wish, key);
    X509_set_issuer_name(made.get(), X509_get_subject_name(own_.get()));
    Sign(made.get());
    return {Pem(made.get()), Pem(key.get())};
  }
  Issued Issue() { return Issue(Wish{}); }

 private:
  struct Deleter {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(BIO* bio) const { BIO_free(bio); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Deleter>;
  using Certificate = std::unique_ptr<X509, Deleter>;

  Certificate New(const Wish& wish, const Key& key) {
    Certificate made(X509_new());
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), wish.begin_days * 86'400L);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), wish.end_days * 86'400L);
    X509_set_pubkey(made.get(), key.get());
    X509_NAME* const name = X509_get_subject_name(made.get());
    const auto* const text = reinterpret_cast<const unsigned char*>(wish.name.c_str());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    const bool is_authority = wish.names.empty();
    Extend(made.get(), NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (!is_authority) Extend(made.get(), NID_subject_alt_name, wish.names);
    return made;
  }

  static void Extend(X509* certificate, int kind, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    EXPECT_EQ(X509_add_ext(certificate, extension, -1), 1) << value;
    X509_EXTENSION_free(extension);
  }

  void Sign(X509* certificate) { EXPECT_GT(X509_sign(certificate, key_.get(), EVP_sha256()), 0); }

  static std::string Taken(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<std::size_t>(size)};
  }
  static std::string Pem(X509* certificate) {
    const std::unique_ptr<BIO, Deleter> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), certificate);
    return Taken(bio.get());
  }
  static std::string Pem(EVP_PKEY* key) {
    const std::unique_ptr<BIO, Deleter> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
    return Taken(bio.get());
  }

  long serial_ = 0;
  Key key_;
  Certificate own_;
};

// The three files in a directory of their own.
class TestTlsFiles final {
 public:
  TestTlsFiles() : files_{dir_.File("cert.pem"), dir_.File("key.pem"), "", true} {}

  void Put(const Issued& issued) {
    Write(files_.certificate, issued.certificate);
    Write(files_.key, issued.key);
    chmod(files_.key.c_str(), 0600);
  }
  void PutClientCa(const std::string& certificates) {
    files_.client_ca = dir_.File("clients.pem");
    Write(files_.client_ca, certificates);
  }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  const TlsFiles& files() const { return files_; }
  TlsFiles& files() { return files_; }

 private:
  TempDir dir_;
  TlsFiles files_;
};

}  // namespace vmonce::http
