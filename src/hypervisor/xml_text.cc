#include "hypervisor/xml_text.h"

#include <libxml/parser.h>

#include <limits>

namespace vmonce::hypervisor {
namespace {

struct FreeXmlText {
  void operator()(xmlChar* text) const { xmlFree(text); }
};
using XmlString = std::unique_ptr<xmlChar, FreeXmlText>;

std::optional<std::string> Copy(const XmlString& text) {
  if (text == nullptr) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(text.get()));
}

}  // namespace

bool FitsInXml(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') return false;
  }
  const std::string terminated(text);
  return xmlCheckUTF8(reinterpret_cast<const xmlChar*>(terminated.c_str())) != 0;
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
