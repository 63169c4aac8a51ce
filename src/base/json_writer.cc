#include "base/json_writer.h"

#include <cstdint>
#include <cstring>

namespace vmonce {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\t': out += "\\t"; return;
    case '\n': out += "\\n"; return;
    case '\f': out += "\\f"; return;
    case '\r': out += "\\r"; return;
    default: break;
  }
  out += "\\u00";
  out += kHexDigits[static_cast<unsigned char>(c) >> 4];
  out += kHexDigits[static_cast<unsigned char>(c) & 0x0f];
}

// Most strings need no escape, and there are hundreds in an answer: eight bytes are looked at at
// once (S. E. Anderson, Bit Twiddling Hacks: "determine if a word has a byte less than n").
constexpr std::uint64_t kEach = 0x0101010101010101;
constexpr std::uint64_t kTopBits = 0x8080808080808080;

constexpr bool HasZeroByte(std::uint64_t word) { return ((word - kEach) & ~word & kTopBits) != 0; }

constexpr bool HasEscape(std::uint64_t word) {
  const bool has_control = ((word - kEach * 0x20) & ~word & kTopBits) != 0;
  return has_control || HasZeroByte(word ^ (kEach * '"')) || HasZeroByte(word ^ (kEach * '\\'));
}

bool IsPlain(std::string_view text) {
  std::uint64_t word = 0;
  while (text.size() >= sizeof word) {
    std::memcpy(&word, text.data(), sizeof word);
    if (HasEscape(word)) return false;
    text.remove_prefix(sizeof word);
  }
  word = kEach * ' ';
  if (!text.empty()) std::memcpy(&word, text.data(), text.size());
  return !HasEscape(word);
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  if (IsPlain(text)) {
    const std::size_t begin = out.size() + 1;
    out.append(text.size() + 2, '"');
    text.copy(out.data() + begin, text.size());
    return;
  }
  out += '"';
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      AppendEscaped(out, c);
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace vmonce
