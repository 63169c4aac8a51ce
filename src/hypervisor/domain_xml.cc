#include "hypervisor/domain_xml.h"

#include <fmt/format.h>

#include <charconv>

#include "base/sha256.h"
#include "hypervisor/xml_text.h"
#include "model/network.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::size_t kLedgerIdBytes = 12;
constexpr std::string_view kQemuNamespace =
    " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'";

std::string Element(std::string_view name, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>", name, EscapeXml(text));
}

bool EveryTextFits(const model::Label& label) {
  return FitsInXml(label.ledger.value) && FitsInXml(label.host.value) &&
         FitsInXml(label.project.value) && FitsInXml(label.key_hash) &&
         FitsInXml(label.fingerprint);
}

bool EveryTextFits(const ports::DomainOrder& order, const DomainPlaces& places) {
  const model::Image& image = order.spec.image;
  return EveryTextFits(order.label) && FitsInXml(order.name) && FitsInXml(order.mac) &&
         FitsInXml(order.spec.network) && FitsInXml(places.kernel_path) &&
         FitsInXml(places.initrd_path) && FitsInXml(image.cmdline) && FitsInXml(places.disk_path) &&
         FitsInXml(places.seed_path) && FitsInXml(places.console_path);
}

std::string LabelAttributes(const model::Label& label) {
  return fmt::format(
      "ledger='{}' host='{}' project='{}' key_hash='{}' fingerprint='{}' operation='{}' "
      "index='{}' fence='{}' sequence='{}'",
      EscapeXml(label.ledger.value), EscapeXml(label.host.value), EscapeXml(label.project.value),
      EscapeXml(label.key_hash), EscapeXml(label.fingerprint), ToString(label.operation),
      label.index, label.fence.value, label.sequence);
}

// The machine type pc boots fastest without KVM: q35's PCI Express ports are probed one by one, and
// its disks on AHCI need a driver that small guest kernels lack. libvirt's own test driver knows
// i686 only.
std::string OsElement(const ports::DomainOrder& order, const DomainPlaces& places) {
  const model::Image& image = order.spec.image;
  const DomainType type = places.type;
  std::string os = type == DomainType::kTest ? "<os><type arch='i686'>hvm</type>"
                                             : "<os><type arch='x86_64' machine='pc'>hvm</type>";
  if (image.kind == model::ImageKind::kKernel) {
    os += Element("kernel", places.kernel_path);
    if (!places.initrd_path.empty()) os += Element("initrd", places.initrd_path);
    if (!image.cmdline.empty()) os += Element("cmdline", image.cmdline);
  } else {
    os += "<boot dev='hd'/>";
  }
  return os + "</os>";
}

// The formats are stated: nothing that a guest wrote into its disk is ever probed.
std::string DiskElements(const DomainPlaces& places) {
  std::string disks;
  if (!places.disk_path.empty()) {
    disks += fmt::format(
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2' discard='unmap'/>"
        "<source file='{}'/><target dev='vda' bus='virtio'/></disk>",
        EscapeXml(places.disk_path));
  }
  if (!places.seed_path.empty()) {
    disks += fmt::format(
        "<disk type='file' device='disk'><driver name='qemu' type='raw'/>"
        "<source file='{}'/><target dev='vdb' bus='virtio'/><readonly/></disk>",
        EscapeXml(places.seed_path));
  }
  return disks;
}

// Debian 12's libvirt cannot say hostfwd of its own user-mode interface (docs/decisions/0010): with
// forwards, the interface is QEMU's argument.
bool IsQemuArgument(const ports::DomainOrder& order, DomainType type) {
  return !order.forwards.empty() && type != DomainType::kTest;
}

std::string InterfaceElement(const ports::DomainOrder& order, DomainType type) {
  if (IsQemuArgument(order, type)) return "";
  const model::Network network = model::ParseNetwork(order.spec.network).value_or(model::Network());
  std::string source;
  std::string_view kind = "user";
  if (network.kind == model::NetworkKind::kNamed) {
    kind = "network";
    source = fmt::format("<source network='{}'/>", EscapeXml(network.name));
  } else if (network.kind == model::NetworkKind::kBridge) {
    kind = "bridge";
    source = fmt::format("<source bridge='{}'/>", EscapeXml(network.name));
  }
  return fmt::format(
      "<interface type='{}'><mac address='{}'/>{}<model type='virtio'/>{}</interface>", kind,
      EscapeXml(order.mac), source, type == DomainType::kTest ? "" : "<rom enabled='no'/>");
}

// libvirt gives its own devices the slots of pci.0 from the low end; this one is far from them.
constexpr std::string_view kInterfaceSlot = "0x1e";

std::string QemuArguments(const ports::DomainOrder& order, DomainType type) {
  if (!IsQemuArgument(order, type)) return "";
  std::string netdev = "user,id=vmonce0";
  for (const model::Forward& forward : order.forwards) {
    netdev += fmt::format(",hostfwd={}:{}:{}-:{}", ToString(forward.protocol), forward.host_address,
                          forward.host_port, forward.guest_port);
  }
  const std::string device = fmt::format(
      "virtio-net-pci,netdev=vmonce0,mac={},romfile=,bus=pci.0,addr={}", order.mac, kInterfaceSlot);
  std::string arguments;
  for (const std::string& argument :
       {std::string("-netdev"), netdev, std::string("-device"), device}) {
    arguments += fmt::format("<qemu:arg value='{}'/>", EscapeXml(argument));
  }
  return fmt::format("<qemu:commandline>{}</qemu:commandline>", arguments);
}

// No USB, no graphics, no balloon, no boot ROM of the network card: each costs boot time, and none
// is used. Destroyed on a crash, since a half-dead guest that is "running" tells a lie.
std::string DeviceElements(const ports::DomainOrder& order, const DomainPlaces& places) {
  std::string devices = "<controller type='usb' model='none'/>" + DiskElements(places);
  devices += InterfaceElement(order, places.type);
  devices += fmt::format(
      "<serial type='file'><source path='{0}' append='on'/><target port='0'/></serial>"
      "<console type='file'><source path='{0}' append='on'/>"
      "<target type='serial' port='0'/></console>",
      EscapeXml(places.console_path));
  devices += "<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>";
  return devices + "<memballoon model='none'/>";
}

std::string_view LibvirtType(DomainType type) {
  switch (type) {
    case DomainType::kKvm: return "kvm";
    case DomainType::kTcg: return "qemu";
    case DomainType::kTest: return "test";
  }
  return "qemu";
}

// With KVM the guest sees the host's processor: machines are not moved between hosts. Without it,
// all that QEMU can translate: distributions that need x86-64-v2 boot, at no cost that was measured
// over QEMU's default.
std::string_view CpuElement(DomainType type) {
  switch (type) {
    case DomainType::kKvm: return "<cpu mode='host-passthrough' migratable='off'/>";
    case DomainType::kTcg: return "<cpu mode='maximum'/>";
    case DomainType::kTest: return "";
  }
  return "";
}

std::optional<std::int64_t> ParseNumber(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

bool IsLedgerId(std::string_view text) {
  return text.size() == kLedgerIdBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<model::Label> ParseLabel(const xmlNode* element) {
  const auto ledger = XmlAttribute(element, "ledger");
  const auto host = XmlAttribute(element, "host");
  const auto project = XmlAttribute(element, "project");
  const auto key_hash = XmlAttribute(element, "key_hash");
  const auto fingerprint = XmlAttribute(element, "fingerprint");
  const auto operation = ParseUuid(XmlAttribute(element, "operation").value_or(""));
  const auto index = ParseNumber(XmlAttribute(element, "index"));
  const auto fence = ParseNumber(XmlAttribute(element, "fence"));
  const auto sequence = ParseNumber(XmlAttribute(element, "sequence"));
  if (!ledger || !host || !project || !key_hash || !fingerprint || !operation) return std::nullopt;
  if (!index || *index > std::numeric_limits<int>::max() || !fence || !sequence) {
    return std::nullopt;
  }
  if (!IsLedgerId(*ledger) || host->empty() || project->empty()) return std::nullopt;
  if (!key_hash->empty() && !ParseDigest(*key_hash)) return std::nullopt;
  if (!ParseDigest(*fingerprint)) return std::nullopt;
  return model::Label{.ledger = {*ledger},
                      .host = {*host},
                      .project = {*project},
                      .key_hash = *key_hash,
                      .fingerprint = *fingerprint,
                      .operation = {*operation},
                      .index = static_cast<int>(*index),
                      .fence = {*fence},
                      .sequence = *sequence};
}

bool IsLabel(const xmlNode* node) {
  const auto text = [](const xmlChar* value) {
    return std::string_view(reinterpret_cast<const char*>(value));
  };
  return node->type == XML_ELEMENT_NODE && node->ns != nullptr && node->ns->href != nullptr &&
         text(node->ns->href) == model::kLabelNamespace && text(node->name) == "label";
}

std::optional<model::Label> FindLabel(const xmlNode* metadata) {
  if (metadata == nullptr) return std::nullopt;
  const xmlNode* found = nullptr;
  for (const xmlNode* node = metadata->children; node != nullptr; node = node->next) {
    if (!IsLabel(node)) continue;
    if (found != nullptr) return std::nullopt;  // Two: whom would one believe?
    found = node;
  }
  return found == nullptr ? std::nullopt : ParseLabel(found);
}

bool HasVisibleAddresses(const xmlNode* devices) {
  if (devices == nullptr) return false;
  for (const xmlNode* node = devices->children; node != nullptr; node = node->next) {
    if (node->type != XML_ELEMENT_NODE) continue;
    if (std::string_view(reinterpret_cast<const char*>(node->name)) != "interface") continue;
    const auto type = XmlAttribute(node, "type");
    if (type == "network" || type == "bridge") return true;
  }
  return false;
}

}  // namespace

std::string_view ToString(DomainType type) {
  switch (type) {
    case DomainType::kKvm: return "kvm";
    case DomainType::kTcg: return "tcg";
    case DomainType::kTest: return "test";
  }
  return "tcg";
}

Result<std::string> BuildDomainXml(const ports::DomainOrder& order, const DomainPlaces& places) {
  if (!EveryTextFits(order, places)) {
    return Fail(ErrorCode::kRefused,
                "a name, path or kernel command line has control characters or is not UTF-8");
  }
  std::string xml = fmt::format("<domain type='{}'{}>", LibvirtType(places.type),
                                IsQemuArgument(order, places.type) ? kQemuNamespace : "");
  xml += Element("name", order.name) + Element("uuid", ToString(order.vm));
  xml += fmt::format("<metadata><{0}:label xmlns:{0}='{1}' {2}/></metadata>", kLabelPrefix,
                     model::kLabelNamespace, LabelAttributes(order.label));
  xml += fmt::format("<memory unit='MiB'>{0}</memory><currentMemory unit='MiB'>{0}</currentMemory>",
                     order.spec.memory_mib);
  xml += fmt::format("<vcpu placement='static'>{}</vcpu>", order.spec.cpus);
  xml += OsElement(order, places);
  xml += fmt::format("<features><acpi/><apic/></features>{}", CpuElement(places.type));
  xml += "<clock offset='utc'/><on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot>";
  xml += "<on_crash>destroy</on_crash>";
  xml += fmt::format("<devices>{}</devices>{}</domain>", DeviceElements(order, places),
                     QemuArguments(order, places.type));
  return xml;
}

Result<std::string> BuildLabelXml(const model::Label& label) {
  if (!EveryTextFits(label)) {
    return Fail(ErrorCode::kRefused, "a text of the label has control characters or is not UTF-8");
  }
  return fmt::format("<label {}/>", LabelAttributes(label));
}

std::optional<ParsedDomain> ParseDomain(std::string_view xml) {
  const XmlDocument document = ParseXml(xml);
  if (document == nullptr) return std::nullopt;
  const xmlNode* root = xmlDocGetRootElement(document.get());
  if (root == nullptr || std::string_view(reinterpret_cast<const char*>(root->name)) != "domain") {
    return std::nullopt;
  }
  const auto name = XmlText(XmlChild(root, "name"));
  const auto uuid = ParseUuid(XmlText(XmlChild(root, "uuid")).value_or(""));
  if (!name || name->empty() || !uuid) return std::nullopt;
  return ParsedDomain{.id = {*uuid},
                      .name = *name,
                      .label = FindLabel(XmlChild(root, "metadata")),
                      .has_visible_addresses = HasVisibleAddresses(XmlChild(root, "devices"))};
}

}  // namespace vmonce::hypervisor
