// Enums and the words that the API and the ledger use for them: one table per enum, both ways. The
// table's order is the enum's.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace vmonce::model {

// A value outside the table is a bug (CHECK).
template <typename Enum, std::size_t Count>
std::string_view WordOf(const std::array<std::string_view, Count>& words, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  CHECK(index < Count);
  return words[index];
}

// std::nullopt for anything but one of the words, byte by byte.
template <typename Enum, std::size_t Count>
std::optional<Enum> EnumOf(const std::array<std::string_view, Count>& words,
                           std::string_view text) {
  for (std::size_t i = 0; i < Count; ++i) {
    if (words[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace vmonce::model
