#include "hypervisor/domain_xml.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "hypervisor/label_xml.h"
#include "hypervisor/xml_text.h"
#include "model/network.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::string_view kQemuNamespace =
    " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'";

std::string Element(std::string_view name, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>", name, EscapeXml(text));
}

bool EveryTextFits(const ports::DomainOrder& order, const DomainPlaces& places) {
  const model::Image& image = order.spec.image;
  return LabelFits(order.label) && FitsInXml(order.name) && FitsInXml(order.mac) &&
         FitsInXml(order.spec.network) && FitsInXml(places.kernel_path) &&
         FitsInXml(places.initrd_path) && FitsInXml(image.cmdline) && FitsInXml(places.disk_path) &&
         FitsInXml(places.seed_path) && FitsInXml(places.console_path);
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

std::string_view NameOf(const xmlNode* node) {
  return node->type == XML_ELEMENT_NODE ? reinterpret_cast<const char*>(node->name)
                                        : std::string_view();
}

int NumberIn(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && number > 0 ? number : 0;
}

// libvirt answers in KiB, whatever it was told.
int MemoryMibIn(const xmlNode* memory) {
  static const std::map<std::string, int, std::less<>> kKibOf{
      {"KiB", 1}, {"MiB", 1024}, {"GiB", 1024 * 1024}};
  const auto unit = kKibOf.find(XmlAttribute(memory, "unit").value_or("KiB"));
  if (unit == kKibOf.end()) return 0;
  return static_cast<int>(std::int64_t{NumberIn(XmlText(memory).value_or(""))} * unit->second /
                          1024);
}

// "tcp:127.0.0.1:20022-:22", as QemuArguments() wrote it.
std::optional<model::Forward> ParseHostForward(std::string_view text) {
  const std::size_t protocol_end = text.find(':');
  const std::size_t dash = text.find("-:");
  if (protocol_end == std::string_view::npos || dash == std::string_view::npos) return std::nullopt;
  const std::size_t port = text.rfind(':', dash);
  if (port <= protocol_end) return std::nullopt;
  const auto protocol = model::ParseProtocol(text.substr(0, protocol_end));
  model::Forward forward{
      .guest_port = NumberIn(text.substr(dash + 2)),
      .protocol = protocol.value_or(model::Protocol::kTcp),
      .host_port = NumberIn(text.substr(port + 1, dash - port - 1)),
      .host_address = std::string(text.substr(protocol_end + 1, port - protocol_end - 1))};
  if (!protocol || forward.guest_port == 0 || forward.host_port == 0) return std::nullopt;
  return forward;
}

// The parts of a QEMU argument: "user,id=vmonce0,hostfwd=..." .
void ReadQemuArgument(std::string_view argument, ports::DomainFacts& facts) {
  while (!argument.empty()) {
    const std::size_t comma = std::min(argument.find(','), argument.size());
    const std::string_view part = argument.substr(0, comma);
    argument.remove_prefix(std::min(comma + 1, argument.size()));
    if (part.starts_with("mac=")) facts.mac = part.substr(4);
    if (!part.starts_with("hostfwd=")) continue;
    if (const auto forward = ParseHostForward(part.substr(8))) facts.forwards.push_back(*forward);
  }
}

void ReadQemuArguments(const xmlNode* root, ports::DomainFacts& facts) {
  for (const xmlNode* child = root->children; child != nullptr; child = child->next) {
    if (NameOf(child) != "commandline") continue;
    for (const xmlNode* arg = child->children; arg != nullptr; arg = arg->next) {
      if (NameOf(arg) == "arg") ReadQemuArgument(XmlAttribute(arg, "value").value_or(""), facts);
    }
  }
}

void ReadInterface(const xmlNode* interface, ports::DomainFacts& facts) {
  if (interface == nullptr) return;
  facts.mac = XmlAttribute(XmlChild(interface, "mac"), "address").value_or("");
  const std::string type = XmlAttribute(interface, "type").value_or("");
  const xmlNode* const source = XmlChild(interface, "source");
  if (type == "network") facts.network = XmlAttribute(source, "network").value_or("");
  if (type == "bridge") facts.network = "bridge:" + XmlAttribute(source, "bridge").value_or("");
}

ports::DomainFacts ReadFacts(const xmlNode* root) {
  ports::DomainFacts facts;
  facts.cpus = NumberIn(XmlText(XmlChild(root, "vcpu")).value_or(""));
  facts.memory_mib = MemoryMibIn(XmlChild(root, "memory"));
  facts.network = model::kUserNetwork;
  ReadInterface(XmlChild(XmlChild(root, "devices"), "interface"), facts);
  ReadQemuArguments(root, facts);
  const xmlNode* const os = XmlChild(root, "os");
  facts.kernel_path = XmlText(XmlChild(os, "kernel")).value_or("");
  facts.initrd_path = XmlText(XmlChild(os, "initrd")).value_or("");
  facts.cmdline = XmlText(XmlChild(os, "cmdline")).value_or("");
  return facts;
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
                      .has_visible_addresses = HasVisibleAddresses(XmlChild(root, "devices")),
                      .facts = ReadFacts(root)};
}

}  // namespace vmonce::hypervisor
