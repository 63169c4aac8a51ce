// A machine as libvirt is told of it, and what is read of one: the domain XML
// (https://libvirt.org/formatdomain.html) and the label inside it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/label.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

enum class DomainType { kKvm, kTcg, kTest };
std::string_view ToString(DomainType type);  // "kvm", "tcg", "test".

// Where the order's parts stand on the host.
struct DomainPlaces {
  DomainType type = DomainType::kTcg;
  std::string disk_path;    // The overlay, a qcow2; empty when the order has no disk.
  std::string seed_path;    // The NoCloud image.
  std::string kernel_path;  // Of an image that is one.
  std::string initrd_path;
  std::string console_path;  // The serial console is appended to this file.
};

// kRefused: some text of the order cannot stand in XML.
Result<std::string> BuildDomainXml(const ports::DomainOrder& order, const DomainPlaces& places);

struct ParsedDomain {
  model::VmId id;
  std::string name;
  std::optional<model::Label> label;  // Absent when there is none, or none that is well-formed.
  // Some interface is in a named network or on a bridge: its host may know its address.
  bool has_visible_addresses = false;
  ports::DomainFacts facts;
};

// Absent: no domain XML with a name and a UUID. Anybody may have written it: a malformed label, or
// two of them, is no label.
std::optional<ParsedDomain> ParseDomain(std::string_view xml);

}  // namespace vmonce::hypervisor
