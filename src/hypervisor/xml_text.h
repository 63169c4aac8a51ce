// Text into and out of XML. Pure.
#pragma once

#include <libxml/tree.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace vmonce::hypervisor {

// True when XML 1.0 can carry the text: UTF-8 without control characters but tab and line ends.
bool FitsInXml(std::string_view text);

// Fit for element text and for attributes in either quote. Precondition: FitsInXml.
std::string EscapeXml(std::string_view text);

struct FreeXml {
  void operator()(xmlDoc* document) const { xmlFreeDoc(document); }
};
using XmlDocument = std::unique_ptr<xmlDoc, FreeXml>;

// Reads without network, external entities or a document type (which none of libvirt's texts has).
// Null when it is not well-formed.
XmlDocument ParseXml(std::string_view text);

// The first child element of that name without a namespace, or null.
const xmlNode* XmlChild(const xmlNode* parent, std::string_view name);
// The text inside, or of the attribute; absent when the element (null) or attribute is.
std::optional<std::string> XmlText(const xmlNode* element);
std::optional<std::string> XmlAttribute(const xmlNode* element, const char* name);

}  // namespace vmonce::hypervisor
