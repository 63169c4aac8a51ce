// SHA-256 and what is built of it (FIPS 180-4, RFC 2104), hexadecimal, and comparison in constant
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vmonce {

using Digest = std::array<std::uint8_t, 32>;

Digest Sha256(std::string_view data);
Digest HmacSha256(std::string_view key, std::string_view data);

// Lower case.
std::string ToHex(std::span<const std::uint8_t> bytes);
std::optional<Digest> ParseDigest(std::string_view hex);

// RFC 4648 section 4, with padding. Decoding accepts nothing but the exact encoding.
std::string ToBase64(std::string_view data);
std::optional<std::string> ParseBase64(std::string_view text);

// Takes the same time whatever differs; only the length is told by time.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace vmonce
