#include "app/config_fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/port_probe.h"
#include "model/limits.h"
#include "model/network.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

constexpr std::array<std::string_view, 3> kAccelerators = {"auto", "kvm", "tcg"};
constexpr std::array<std::string_view, 2> kImageKinds = {"disk", "kernel"};
constexpr std::array<std::string_view, 2> kDiskFormats = {"qcow2", "raw"};
constexpr std::string_view kEmbedded = "qemu:///embed?root=";
constexpr std::string_view kSimulated = "simulated:";

// Names of hosts and images stand in labels, URLs and file names.
bool IsName(std::string_view text) { return model::IsImageName(text); }

// What was said before, and where, so that the second mention can point at the first.
class FirstMentions {
 public:
  explicit FirstMentions(std::string_view what) : what_(what) {}

  // True when it is the first.
  bool Add(const std::string& word, const ConfigOrigin& at, ConfigFindings& findings,
           std::string_view fix) {
    const auto [first, is_new] = at_.try_emplace(word, at);
    if (is_new) return true;
    const std::string where =
        first->second.IsFile() ? fmt::format(" on line {}", first->second.line) : "";
    findings.Add(at, fmt::format("{} \"{}\" was given before{}", what_, word, where),
                 std::string(fix));
    return false;
  }

 private:
  const std::string_view what_;
  std::map<std::string, ConfigOrigin> at_;
};

// ---- Hosts ----------------------------------------------------------------------------------

bool IsDaemonUri(std::string_view uri) {
  return uri.starts_with("qemu:///system") || uri.starts_with("qemu:///session") ||
         uri.starts_with("qemu+") || uri.starts_with("test:///");
}

void CheckUri(ConfigTableReader& table, const std::string& uri) {
  if (uri.starts_with(kEmbedded)) {
    if (!IsPlainPath(std::string_view(uri).substr(kEmbedded.size()))) {
      table.Mistake("uri", fmt::format("the root of \"{}\" is no plain absolute path", uri),
                    fmt::format("write \"{}/var/lib/vmonce/libvirt\"", kEmbedded));
    }
    return;
  }
  if (uri.starts_with(kSimulated) || IsDaemonUri(uri)) return;
  table.Mistake("uri", fmt::format("\"{}\" is no URI of a hypervisor that is served here", uri),
                "write \"qemu:///embed?root=DIR\", \"qemu:///system\", \"qemu+ssh://HOST/system\", "
                "\"qemu+tls://HOST/system\", \"test:///default\" or \"simulated:\"");
}

// Keys that mean nothing on a host of this kind are mistakes: whoever wrote them expects something.
void CheckFit(ConfigTableReader& table, const std::string& uri) {
  for (const std::string_view key : {"pool", "pool_path"}) {
    if (!table.Has(key) || IsDaemonUri(uri)) continue;
    table.Mistake(key,
                  fmt::format("\"{}\" in [[host]] needs a libvirt daemon, not \"{}\"", key, uri),
                  "remove it, or use a URI such as \"qemu:///system\"");
  }
  if (table.Has("latency_ms") && !uri.starts_with(kSimulated)) {
    table.Mistake("latency_ms", "\"latency_ms\" in [[host]] is for simulated hosts only",
                  "remove it, or use the URI \"simulated:\"");
  }
}

void ReadForwards(ConfigTableReader& table, HostConfig& host) {
  std::string ports = fmt::format("{}-{}", host.forward_ports.first, host.forward_ports.last);
  table.Text("forward_ports", ports);
  if (const auto range = model::ParsePortRange(ports)) {
    host.forward_ports = *range;
  } else {
    table.Mistake("forward_ports", fmt::format("\"{}\" is no range of ports", ports),
                  fmt::format("write first and last, such as \"20000-29999\", from {} to {}",
                              limits::kHostPortMin, limits::kPortMax));
  }
  table.Text("forward_address", host.forward_address);
  if (!IsIpv4Address(host.forward_address)) {
    table.Mistake("forward_address", fmt::format("\"{}\" is no IPv4 address", host.forward_address),
                  "write one of the host's, such as \"127.0.0.1\", or \"0.0.0.0\" for all");
  }
}

void ReadNetworks(ConfigTableReader& table, HostConfig& host) {
  table.Texts("networks", limits::kHostNetworks, host.networks);
  for (const std::string& text : host.networks) {
    const auto network = model::ParseNetwork(text);
    if (!network || network->kind == model::NetworkKind::kUser) {
      table.Mistake("networks", fmt::format("\"{}\" is no network to be offered", text),
                    "write the name of a libvirt network, or \"bridge:NAME\"; \"user\" is always "
                    "there");
    } else if (network->kind == model::NetworkKind::kNamed && host.uri.starts_with(kEmbedded)) {
      table.Mistake("networks",
                    fmt::format("the embedded hypervisor has no libvirt network \"{}\"", text),
                    "offer a bridge, \"bridge:NAME\", or use a libvirt daemon: \"qemu:///system\"");
    }
  }
}

HostConfig ReadHost(const ConfigNode* node, const ConfigPlace& place, ConfigFindings& findings) {
  HostConfig host;
  host.uri = std::string(kEmbedded) + place.embedded_root;
  std::string prefix = "host.local";
  const ConfigEntry* id = node == nullptr ? nullptr : FindEntry(*node, "id");
  if (id != nullptr && TextOf(id->node) != nullptr) prefix = "host." + *TextOf(id->node);
  ConfigTableReader table(node, {"[[host]]", std::move(prefix)}, place.directory, findings);
  table.Text("id", host.id.value);
  if (node != nullptr) table.Require("id", "id = \"local\"");
  if (!IsName(host.id.value)) {
    table.Mistake("id", fmt::format("\"{}\" is no name for a host", host.id.value),
                  "use 1 to 63 letters, digits, '-', '_', '.' or ':'");
  }
  table.Text("uri", host.uri);
  if (table.Has("uri")) CheckUri(table, host.uri);
  table.Choice("accel", kAccelerators, host.accel);
  table.OptionalInteger("cpus", {1, limits::kHostCpusMax}, "measured", host.cpus);
  table.OptionalInteger("memory_mib", {1, limits::kHostMemoryMibMax}, "measured", host.memory_mib);
  table.OptionalInteger("disk_gib", {1, limits::kHostDiskGibMax}, "measured", host.disk_gib);
  table.Integer("vms", {1, limits::kHostVmsMax}, host.vms);
  table.Text("pool", host.pool);
  if (host.pool.empty()) {
    table.Mistake("pool", "\"pool\" in [[host]] is empty", "name a storage pool");
  }
  table.Text("pool_path", host.pool_path);
  if (!host.pool_path.empty() && host.pool_path.front() != '/') {
    table.Mistake("pool_path", "\"pool_path\" in [[host]] is not absolute",
                  "name the directory as the daemon's machine sees it, from /");
  }
  std::int64_t latency_ms = 0;
  table.Integer("latency_ms", {0, limits::kSimulatedLatencyMs}, latency_ms);
  host.latency = Milliseconds(latency_ms);
  ReadForwards(table, host);
  ReadNetworks(table, host);
  CheckFit(table, host.uri);
  table.Finish();
  return host;
}

// ---- Images ---------------------------------------------------------------------------------

void CheckFile(ConfigTableReader& table, std::string_view key, const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  std::string what;
  if (status.type() == std::filesystem::file_type::not_found) {
    what = "does not exist";
  } else if (status.type() == std::filesystem::file_type::directory) {
    what = "is a directory";
  } else if (error || access(path.c_str(), R_OK) != 0) {
    what = "cannot be read";
  }
  if (what.empty()) return;
  table.Mistake(key, fmt::format("the file of \"{}\", {}, {}", key, path, what),
                "mend the path, or put a readable file there");
}

void CheckDiskFormat(ConfigTableReader& table, const model::Image& image) {
  if (image.HasDisk()) {
    table.Require("disk_format", "disk_format = \"qcow2\" or \"raw\": it is never guessed");
  } else if (table.Has("disk_format")) {
    table.Mistake("disk_format", "\"disk_format\" in [[image]] is given without \"disk\"",
                  "add disk = \"PATH\", or remove it");
  }
}

void CheckKind(ConfigTableReader& table, const model::Image& image) {
  if (image.kind == model::ImageKind::kKernel) {
    table.Require("kernel", "kernel = \"PATH\": kind = \"kernel\" needs one");
    return;
  }
  table.Require("disk", "disk = \"PATH\": kind = \"disk\" needs one");
  for (const std::string_view key : {"kernel", "initrd", "cmdline"}) {
    if (!table.Has(key)) continue;
    table.Mistake(key, fmt::format("\"{}\" in [[image]] is for kind = \"kernel\"", key),
                  "remove it, or change the kind");
  }
}

void CheckNames(ConfigTableReader& table, const model::Image& image) {
  constexpr std::string_view kFix = "use 1 to 63 letters, digits, '-', '_', '.' or ':'";
  if (table.Has("name") && !IsName(image.name)) {
    table.Mistake("name", fmt::format("\"{}\" is no name for an image", image.name),
                  std::string(kFix));
  }
  for (const std::string& alias : image.aliases) {
    if (IsName(alias)) continue;
    table.Mistake("aliases", fmt::format("\"{}\" is no name for an image", alias),
                  std::string(kFix));
  }
}

model::Image ReadImage(const ConfigNode& node, const ConfigPlace& place, FirstMentions& names,
                       ConfigFindings& findings) {
  model::Image image;
  const ConfigEntry* name = FindEntry(node, "name");
  const std::string* text = name == nullptr ? nullptr : TextOf(name->node);
  ConfigTableReader table(&node, {"[[image]]", "image." + (text == nullptr ? "?" : *text)},
                          place.directory, findings);
  table.Text("name", image.name);
  table.Require("name", "name = \"debian-12\"");
  std::string kind;
  table.Choice("kind", kImageKinds, kind);
  table.Require("kind", "kind = \"disk\" or \"kernel\"");
  image.kind = model::ParseImageKind(kind).value_or(image.kind);
  table.Path("disk", image.disk_path);
  table.Choice("disk_format", kDiskFormats, image.disk_format);
  table.Path("kernel", image.kernel_path);
  table.Path("initrd", image.initrd_path);
  table.Text("cmdline", image.cmdline);
  table.Texts("aliases", limits::kImageAliases, image.aliases);
  table.Finish();

  CheckNames(table, image);
  CheckDiskFormat(table, image);
  if (!kind.empty()) CheckKind(table, image);
  CheckFile(table, "disk", image.disk_path);
  CheckFile(table, "kernel", image.kernel_path);
  CheckFile(table, "initrd", image.initrd_path);
  if (image.cmdline.size() > limits::kCmdlineBytes) {
    table.Mistake("cmdline",
                  fmt::format("\"cmdline\" in [[image]] has {} bytes", image.cmdline.size()),
                  fmt::format("shorten it to {}: kernels cut longer ones", limits::kCmdlineBytes));
  }
  constexpr std::string_view kFix =
      "names and aliases of images share one namespace: choose another";
  if (!image.name.empty()) names.Add(image.name, table.At("name"), findings, kFix);
  for (const std::string& alias : image.aliases) {
    names.Add(alias, table.At("aliases"), findings, kFix);
  }
  return image;
}

}  // namespace

std::vector<HostConfig> ReadHosts(std::span<const ConfigNode* const> tables,
                                  const ConfigPlace& place, ConfigFindings& findings) {
  if (tables.empty()) return {ReadHost(nullptr, place, findings)};
  std::vector<HostConfig> hosts;
  FirstMentions ids("the host id");
  FirstMentions uris("the URI");
  bool has_embedded = false;
  for (const ConfigNode* const node : tables) {
    HostConfig host = ReadHost(node, place, findings);
    const auto place_of = [node](std::string_view key) {
      const ConfigEntry* entry = FindEntry(*node, key);
      return entry == nullptr ? node->at : entry->node.at;
    };
    ids.Add(host.id.value, place_of("id"), findings, "give every host its own id");
    const bool is_new = uris.Add(host.uri, place_of("uri"), findings,
                                 "two hosts on one hypervisor count its room twice: remove one");
    const bool is_embedded = host.uri.starts_with(kEmbedded);
    // libvirt keeps an embedded root open for as long as the process lives.
    if (is_new && is_embedded && has_embedded) {
      findings.Add(place_of("uri"),
                   "a process serves one embedded hypervisor, and this is the second",
                   "remove it, or reach it by a libvirt daemon: \"qemu:///system\"");
    }
    has_embedded = has_embedded || is_embedded;
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::vector<model::Image> ReadImages(std::span<const ConfigNode* const> tables,
                                     const ConfigPlace& place, ConfigFindings& findings) {
  std::vector<model::Image> images;
  FirstMentions names("the image name");
  for (const ConfigNode* const node : tables) {
    images.push_back(ReadImage(*node, place, names, findings));
  }
  return images;
}

}  // namespace vmonce::app
