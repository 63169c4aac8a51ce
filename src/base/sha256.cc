#include "base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace vmonce {
namespace {

constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::optional<unsigned> LowerHexValue(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

}  // namespace

Digest Sha256(std::string_view data) {
  // EVP_sha256() would be looked up among OpenSSL's providers, under a lock, with every call.
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  // Made anew it costs as much as the digest of a short text. What it was used for leaves nothing
  // in it but the digest.
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  Digest digest;
  CHECK(EVP_DigestInit_ex(context.get(), sha256, nullptr) == 1 &&
        EVP_DigestUpdate(context.get(), data.data(), data.size()) == 1 &&
        EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  return digest;
}

Digest HmacSha256(std::string_view key, std::string_view data) {
  Digest digest;
  // OpenSSL takes a null key for "none given": an empty key needs an address.
  const char* key_bytes = key.empty() ? "" : key.data();
  CHECK(HMAC(EVP_sha256(), key_bytes, static_cast<int>(key.size()), Bytes(data), data.size(),
             digest.data(), nullptr) != nullptr);
  return digest;
}

std::string ToHex(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(bytes.size() * 2, '0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text[2 * i] = kDigits[bytes[i] >> 4];
    text[2 * i + 1] = kDigits[bytes[i] & 0x0f];
  }
  return text;
}

std::optional<Digest> ParseDigest(std::string_view hex) {
  Digest digest;
  if (hex.size() != digest.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = LowerHexValue(hex[2 * i]);
    const auto low = LowerHexValue(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return digest;
}

std::string ToBase64(std::string_view data) {
  std::string text;
  text.reserve((data.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < data.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, data.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? static_cast<unsigned char>(data[at + i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= count ? kBase64Alphabet[group >> (18 - 6 * i) & 0x3f] : '=');
    }
  }
  return text;
}

std::optional<std::string> ParseBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string data;
  data.reserve(text.size() / 4 * 3);
  std::string_view digits = text;
  for (int i = 0; i < 2 && digits.ends_with('='); ++i) digits.remove_suffix(1);
  std::uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : digits) {
    const std::size_t value = kBase64Alphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffff;
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      data.push_back(static_cast<char>(bits >> bit_count & 0xff));
    }
  }
  // Bits that no byte uses must be zero and padding exact, or two texts would stand for one value.
  if (bit_count == 6 || (bits & ((1u << bit_count) - 1)) != 0) return std::nullopt;
  return data;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace vmonce
