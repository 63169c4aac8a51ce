#include "hypervisor/xml_text.h"

#include <libxml/parser.h>

#include <bit>
#include <limits>

namespace vmonce::hypervisor {
namespace {

struct FreeXmlText {
  void operator()(xmlChar* text) const { xmlFree(text); }
};
using XmlString = std::unique_ptr<xmlChar, FreeXmlText>;

// XML 1.0, section 2.2.
bool IsXmlCharacter(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0xd7ff) ||
         (c >= 0xe000 && c <= 0xfffd) || (c >= 0x10000 && c <= 0x10ffff);
}

// Takes the first code point off the front; nothing when that is not UTF-8 in its shortest form
// (RFC 3629 section 3). Precondition: the text is not empty.
std::optional<char32_t> TakeCodePoint(std::string_view& text) {
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // That needs so many bytes.
  const auto first = static_cast<unsigned char>(text.front());
  const int ones = std::countl_one(first);
  const std::size_t length = ones == 0 ? 1 : static_cast<std::size_t>(ones);
  if (ones == 1 || length > 4 || length > text.size()) return std::nullopt;
  char32_t c = ones == 0 ? first : first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80) return std::nullopt;
    c = c << 6U | (byte & 0x3fU);
  }
  text.remove_prefix(length);
  if (c < kLeast[length]) return std::nullopt;
  return c;
}

std::optional<std::string> Copy(const XmlString& text) {
  if (text == nullptr) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(text.get()));
}

}  // namespace

// libxml2's own xmlCheckUTF8 lets overlong forms, surrogates and U+FFFF pass, which its parser
// refuses.
bool FitsInXml(std::string_view text) {
  while (!text.empty()) {
    const std::optional<char32_t> c = TakeCodePoint(text);
    if (!c || !IsXmlCharacter(*c)) return false;
  }
  return true;
}

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&apos;"; break;
      // Attribute values would otherwise be read back with blanks in their place.
      case '\t': escaped += "&#9;"; break;
      case '\n': escaped += "&#10;"; break;
      case '\r': escaped += "&#13;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

XmlDocument ParseXml(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return nullptr;
  XmlDocument document(xmlReadMemory(text.data(), static_cast<int>(text.size()), nullptr, nullptr,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING));
  if (document != nullptr && xmlGetIntSubset(document.get()) != nullptr) return nullptr;
  return document;
}

const xmlNode* XmlChild(const xmlNode* parent, std::string_view name) {
  if (parent == nullptr) return nullptr;
  for (const xmlNode* node = parent->children; node != nullptr; node = node->next) {
    if (node->type == XML_ELEMENT_NODE && node->ns == nullptr &&
        name == reinterpret_cast<const char*>(node->name)) {
      return node;
    }
  }
  return nullptr;
}

std::optional<std::string> XmlText(const xmlNode* element) {
  if (element == nullptr) return std::nullopt;
  return Copy(XmlString(xmlNodeGetContent(element)));
}

std::optional<std::string> XmlAttribute(const xmlNode* element, const char* name) {
  if (element == nullptr) return std::nullopt;
  return Copy(XmlString(xmlGetNoNsProp(element, reinterpret_cast<const xmlChar*>(name))));
}

}  // namespace vmonce::hypervisor
