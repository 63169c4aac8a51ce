#include "base/json_writer.h"

#include <algorithm>
#include <array>

namespace vmonce {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

constexpr bool NeedsEscape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

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
  out += kDigits[static_cast<unsigned char>(c) >> 4];
  out += kDigits[static_cast<unsigned char>(c) & 0x0f];
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  // What needs no escape, mostly all of it, goes as a whole.
  while (!text.empty()) {
    const auto plain =
        static_cast<std::size_t>(std::ranges::find_if(text, NeedsEscape) - text.begin());
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    AppendEscaped(out, text.front());
    text.remove_prefix(1);
  }
  out += '"';
}

}  // namespace vmonce
