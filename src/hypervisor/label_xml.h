// The label inside a domain's XML. Pure.
#pragma once

#include <libxml/tree.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "model/label.h"

namespace vmonce::hypervisor {

inline constexpr const char* kLabelPrefix = "vmonce";

// Whether XML can carry all of its texts.
bool LabelFits(const model::Label& label);

// "ledger='...' host='...'": what stands inside the element. Precondition: LabelFits().
std::string LabelAttributes(const model::Label& label);

// The label alone, as virDomainSetMetadata takes it: libvirt itself puts it into the namespace.
// kRefused: some text of it cannot stand in XML.
Result<std::string> BuildLabelXml(const model::Label& label);

// The label in a domain's <metadata> (null: none). Anybody may have written it: a malformed label,
// or two of them, is no label. An origin that is malformed is none.
std::optional<model::Label> FindLabel(const xmlNode* metadata);

}  // namespace vmonce::hypervisor
