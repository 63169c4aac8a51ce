#include "model/token.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/check.h"
#include "model/auth_limits.h"
#include "model/limits.h"
#include "model/words.h"

namespace vmonce::model {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"metrics", "viewer", "member", "admin"};
constexpr std::string_view kMark = "vmo_";

}  // namespace

std::string_view ToString(Role role) { return WordOf(kRoles, role); }

std::optional<Role> ParseRole(std::string_view text) { return EnumOf<Role>(kRoles, text); }

bool IsProjectName(std::string_view text) {
  return !text.empty() && text.size() <= limits::kNameBytes && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::string NewTokenSecret(Random& random) {
  std::array<std::uint8_t, limits::kTokenSecretBytes> bytes{};
  random.Fill(std::as_writable_bytes(std::span(bytes)));
  return std::string(kMark) + ToHex(bytes);
}

bool IsTokenSecret(std::string_view text) {
  return text.starts_with(kMark) && ParseDigest(text.substr(kMark.size())).has_value();
}

Digest TokenHash(std::string_view secret) { return Sha256(secret); }

std::string TokenPrefix(std::string_view secret) {
  CHECK_MSG(IsTokenSecret(secret), "a prefix of what is no token");
  return std::string(secret.substr(0, kMark.size() + limits::kTokenPrefixDigits));
}

}  // namespace vmonce::model
