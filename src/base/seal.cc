#include "base/seal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "base/check.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace vmonce {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kHeaderBytes = 1 + kNonceBytes;
constexpr char kVersion = 1;

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

unsigned char* Bytes(char* text) { return reinterpret_cast<unsigned char*>(text); }
const unsigned char* Bytes(const char* text) {
  return reinterpret_cast<const unsigned char*>(text);
}

// HKDF-Expand (RFC 5869) for one block: the server's key is 32 even bytes and needs no extraction.
std::string DeriveKey(std::string_view key, std::string_view label) {
  const Digest digest = HmacSha256(key, std::string(label) + '\x01');
  return std::string(digest.begin(), digest.end());
}

// What is authenticated beside the secret: the version, so that none can be swapped for another,
// and the context.
std::string AuthenticatedData(std::string_view context) {
  return std::string(1, kVersion) + std::string(context);
}

int CheckedLength(std::string_view text) {
  CHECK(text.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()) / 2);
  return static_cast<int>(text.size());
}

std::unexpected<Error> NotOurs() {
  return Fail(ErrorCode::kInvalid, "the sealed text was not made under this key and context");
}

}  // namespace

Sealer::Sealer(std::string key, Random& random)
    : seal_key_(DeriveKey(key, "vmonce seal")),
      mac_key_(DeriveKey(key, "vmonce mac")),
      random_(random) {
  CHECK(key.size() == kKeyBytes);
}

std::string Sealer::Seal(std::string_view plain, std::string_view context) const {
  std::string sealed(kHeaderBytes + plain.size() + kTagBytes, '\0');
  sealed[0] = kVersion;
  // Chance nonces of 96 bits are safe for 2^32 texts under one key; no server seals that many.
  random_.Fill(std::as_writable_bytes(std::span(sealed).subspan(1, kNonceBytes)));
  const std::string aad = AuthenticatedData(context);
  const CipherContext cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  CHECK(cipher != nullptr);
  char* const body = sealed.data() + kHeaderBytes;
  int written = 0;
  CHECK(EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(seal_key_.data()),
                           Bytes(sealed.data() + 1)) == 1);
  CHECK(EVP_EncryptUpdate(cipher.get(), nullptr, &written, Bytes(aad.data()), CheckedLength(aad)) ==
        1);
  CHECK(EVP_EncryptUpdate(cipher.get(), Bytes(body), &written, Bytes(plain.data()),
                          CheckedLength(plain)) == 1);
  CHECK(static_cast<std::size_t>(written) == plain.size());
  char* const tag = body + plain.size();
  // GCM is a stream: the end writes nothing.
  CHECK(EVP_EncryptFinal_ex(cipher.get(), Bytes(tag), &written) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag) == 1);
  return sealed;
}

Result<std::string> Sealer::Open(std::string_view sealed, std::string_view context) const {
  if (sealed.size() < kHeaderBytes + kTagBytes || sealed[0] != kVersion) return NotOurs();
  const std::string_view body =
      sealed.substr(kHeaderBytes, sealed.size() - kHeaderBytes - kTagBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  const std::string aad = AuthenticatedData(context);
  const CipherContext cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  CHECK(cipher != nullptr);
  // One byte more, so that there is an address to write to when the secret is empty.
  std::string plain(body.size() + 1, '\0');
  int written = 0;
  CHECK(EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(seal_key_.data()),
                           Bytes(sealed.data() + 1)) == 1);
  CHECK(EVP_DecryptUpdate(cipher.get(), nullptr, &written, Bytes(aad.data()), CheckedLength(aad)) ==
        1);
  CHECK(EVP_DecryptUpdate(cipher.get(), Bytes(plain.data()), &written, Bytes(body.data()),
                          CheckedLength(body)) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1);
  if (EVP_DecryptFinal_ex(cipher.get(), Bytes(plain.data() + body.size()), &written) != 1) {
    return NotOurs();
  }
  plain.resize(body.size());
  return plain;
}

Digest Sealer::Mac(std::string_view secret) const { return HmacSha256(mac_key_, secret); }

Result<std::string> ReadKeyFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.IsOpen())
    return std::unexpected(ErrnoError(errno, fmt::format("open key file {}", path)));
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) {
    return std::unexpected(ErrnoError(errno, fmt::format("stat key file {}", path)));
  }
  if (!S_ISREG(status.st_mode) || status.st_size != kKeyBytes) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("key file {} must be a regular file of {} bytes", path, kKeyBytes));
  }
  if ((status.st_mode & 077) != 0) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("key file {} is open to others; run: chmod 600 {}", path, path));
  }
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return Fail(ErrorCode::kInvalid, fmt::format("key file {} belongs to another user", path));
  }
  std::string key(kKeyBytes, '\0');
  // A regular file of this size comes in one read.
  if (read(fd.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) {
    return Fail(ErrorCode::kInternal, fmt::format("key file {} could not be read whole", path));
  }
  return key;
}

Result<std::string> LoadOrCreateKeyFile(const std::string& path, Random& random) {
  auto found = ReadKeyFile(path);
  if (found || found.error().code != ErrorCode::kNotFound) return found;
  std::string key(kKeyBytes, '\0');
  random.Fill(std::as_writable_bytes(std::span(key)));
  const auto made = CreateFileAtomically(path, key, 0600);
  // Another process was first: its key is the key.
  if (!made && made.error().code == ErrorCode::kConflict) return ReadKeyFile(path);
  if (!made) return Context("make key file", made.error());
  return key;
}

}  // namespace vmonce
