// UUIDs (RFC 9562) and the ids made of them. Version 7 is time-ordered, so that primary keys arrive
// in order.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"

namespace vmonce {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const Uuid&) const = default;
  bool IsNil() const { return *this == Uuid{}; }
};

// Lower case with hyphens, 36 bytes.
std::string ToString(const Uuid& uuid);

// Accepts the 36-byte form in either case and nothing else.
std::optional<Uuid> ParseUuid(std::string_view text);

// The high 48 bits are the clock's milliseconds, the rest is chance (RFC 9562 section 5.7).
Uuid NewUuidV7(Clock& clock, Random& random);

// An id that cannot be mistaken for another kind of id.
template <typename Tag>
struct StrongUuid {
  Uuid value;
  auto operator<=>(const StrongUuid&) const = default;
};

template <typename Tag>
std::string ToString(const StrongUuid<Tag>& id) {
  return ToString(id.value);
}

struct UuidHash {
  std::size_t operator()(const Uuid& uuid) const noexcept {
    // The last eight bytes are chance.
    std::uint64_t low = 0;
    for (std::size_t i = 8; i < 16; ++i) low = low << 8 | uuid.bytes[i];
    return static_cast<std::size_t>(low);
  }
  template <typename Tag>
  std::size_t operator()(const StrongUuid<Tag>& id) const noexcept {
    return (*this)(id.value);
  }
};

}  // namespace vmonce
