#include "base/uuid.h"

#include <cstddef>
#include <span>

namespace vmonce {
namespace {

constexpr bool HyphenBefore(std::size_t byte) {
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

std::optional<unsigned> HexValue(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::string ToString(const Uuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  // Every answer has many of them: written in place.
  std::string text(36, '-');
  std::size_t at = 0;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (HyphenBefore(i)) ++at;
    text[at++] = kDigits[uuid.bytes[i] >> 4];
    text[at++] = kDigits[uuid.bytes[i] & 0x0f];
  }
  return text;
}

std::optional<Uuid> ParseUuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Uuid uuid;
  std::size_t at = 0;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (HyphenBefore(i) && text[at++] != '-') return std::nullopt;
    const auto high = HexValue(text[at++]);
    const auto low = HexValue(text[at++]);
    if (!high || !low) return std::nullopt;
    uuid.bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return uuid;
}

Uuid NewUuidV7(Clock& clock, Random& random) {
  Uuid uuid;
  random.Fill(std::as_writable_bytes(std::span(uuid.bytes).subspan(6)));
  const auto ms = static_cast<std::uint64_t>(ToUnixMs(clock.Now()));
  for (std::size_t i = 0; i < 6; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
  }
  uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0f) | 0x70);  // Version 7.
  uuid.bytes[8] = static_cast<std::uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);  // RFC 9562's variant.
  return uuid;
}

}  // namespace vmonce
