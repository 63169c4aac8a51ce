#include "http/tls_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system.h"
#include "http/test_authority.h"

namespace vmonce::http {
namespace {

using testing::HasSubstr;

class TlsContextTest : public testing::Test {
 protected:
  TlsContextTest() { files_.Put(authority_.Issue()); }

  Result<std::shared_ptr<const TlsContext>> Load() {
    return TlsContext::Load(files_.files(), NewSystemClock()->Now());
  }
  // What is wrong, and what to do.
  std::string Refusal() {
    const auto loaded = Load();
    return loaded ? "" : loaded.error().detail;
  }

  TestAuthority authority_;
  TestTlsFiles files_;
};

TEST_F(TlsContextTest, KnowsItsNamesAndItsEnd) {
  files_.Put(
      authority_.Issue({.name = "cn.example",
                        .names = "DNS:vm.example,DNS:*.vm.example,IP:192.0.2.1,IP:2001:db8::1"}));
  const auto loaded = Load();
  ASSERT_TRUE(loaded) << loaded.error().detail;
  for (const char* name : {"vm.example", "a.vm.example", "192.0.2.1", "[2001:db8::1]"}) {
    EXPECT_TRUE((*loaded)->Names(name)) << name;
  }
  // Neither the common name, nor two levels below a wildcard, nor parts of names.
  for (const char* name : {"cn.example", "a.b.vm.example", "evil-vm.example", "vm.example.evil",
                           "192.0.2.2", "[2001:db8::2]", "localhost", ""}) {
    EXPECT_FALSE((*loaded)->Names(name)) << name;
  }
  const Time now = NewSystemClock()->Now();
  EXPECT_GT((*loaded)->expires(), now + std::chrono::hours(29 * 24));
  EXPECT_LT((*loaded)->expires(), now + std::chrono::hours(31 * 24));
}

TEST_F(TlsContextTest, RefusesACertificateThatIsNotValidNow) {
  files_.Put(authority_.Issue({.begin_days = -10, .end_days = -2}));
  EXPECT_THAT(Refusal(), HasSubstr("expired on 20"));
  EXPECT_THAT(Refusal(), HasSubstr("put a new certificate there"));
  files_.Put(authority_.Issue({.begin_days = 2}));
  EXPECT_THAT(Refusal(), HasSubstr("is valid from 20"));
}

TEST_F(TlsContextTest, RefusesTheKeyOfAnotherCertificate) {
  TestTlsFiles::Write(files_.files().key, authority_.Issue().key);
  EXPECT_THAT(Refusal(), HasSubstr("does not belong to the first certificate"));
}

TEST_F(TlsContextTest, RefusesAKeyThatOthersMayRead) {
  chmod(files_.files().key.c_str(), 0644);
  EXPECT_THAT(Refusal(), HasSubstr("mode 0644); run chmod o= g-w "));
  chmod(files_.files().key.c_str(), 0620);
  EXPECT_THAT(Refusal(), HasSubstr("mode 0620"));
  // Debian keeps keys for a group.
  chmod(files_.files().key.c_str(), 0640);
  EXPECT_EQ(Refusal(), "");
}

TEST_F(TlsContextTest, RefusesWhatIsNoPem) {
  const Issued good = authority_.Issue();
  TestTlsFiles::Write(files_.files().key, "-----BEGIN PRIVATE KEY-----\nAAAA\n");
  EXPECT_THAT(Refusal(), HasSubstr("tls_key: "));
  TestTlsFiles::Write(files_.files().key, good.certificate);
  EXPECT_THAT(Refusal(), HasSubstr("holds no private key"));
  files_.Put(good);
  TestTlsFiles::Write(files_.files().certificate, good.key);
  EXPECT_THAT(Refusal(), HasSubstr("holds no certificate as PEM"));
  TestTlsFiles::Write(files_.files().certificate, "");
  EXPECT_THAT(Refusal(), HasSubstr("holds no certificate as PEM"));
  // A chain that was cut while it was copied.
  TestTlsFiles::Write(files_.files().certificate,
                      good.certificate + authority_.certificate().substr(0, 200));
  EXPECT_THAT(Refusal(), HasSubstr("is damaged"));
  TestTlsFiles::Write(files_.files().certificate, good.certificate + authority_.certificate());
  EXPECT_EQ(Refusal(), "");
  files_.PutClientCa("none");
  EXPECT_THAT(Refusal(), HasSubstr("client_ca: "));
  files_.PutClientCa(authority_.certificate() + TestAuthority().certificate());
  EXPECT_EQ(Refusal(), "");
}

// Asking a terminal would hang a service.
TEST_F(TlsContextTest, RefusesAKeyBehindAPassphrase) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  BIO* const file = BIO_new_file(files_.files().key.c_str(), "w");
  ASSERT_EQ(
      PEM_write_bio_PKCS8PrivateKey(file, key, EVP_aes_128_cbc(), "secret", 6, nullptr, nullptr),
      1);
  BIO_free(file);
  EVP_PKEY_free(key);
  EXPECT_THAT(Refusal(), HasSubstr("without a passphrase"));
}

TEST_F(TlsContextTest, NamesTheFileThatIsNotThere) {
  files_.files().key += ".absent";
  EXPECT_THAT(Refusal(), HasSubstr("key.pem.absent"));
  EXPECT_THAT(Refusal(), HasSubstr("mend the path"));
}

}  // namespace
}  // namespace vmonce::http
