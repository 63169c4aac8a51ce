// What the service reads back from hosts, from its ledger, from its configuration, and what names
// stand there.
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "app/client_settings.h"
#include "app/config.h"
#include "app/duration.h"
#include "base/check.h"
#include "base/rfc3339.h"
#include "base/temp_dir.h"
#include "base/uuid.h"
#include "hypervisor/domain_xml.h"
#include "hypervisor/host_uri.h"
#include "hypervisor/image_header.h"
#include "hypervisor/label_xml.h"
#include "hypervisor/marker.h"
#include "hypervisor/xml_text.h"
#include "ledger/row_json.h"
#include "model/forward.h"
#include "model/intent.h"
#include "model/limits.h"
#include "model/network.h"
#include "model/token.h"
#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {
namespace {

// What was understood is written, and understood as the same.
template <typename Value>
void CheckStays(std::string_view input, std::optional<Value> (*read)(std::string_view),
                std::string (*write)(const Value&)) {
  const std::optional<Value> value = read(input);
  if (!value) return;
  const std::string written = write(*value);
  const std::optional<Value> again = read(written);
  CHECK_MSG(again.has_value(), written);
  CHECK_MSG(*again == *value, written);
}

void CheckMarker(std::string_view input) {
  if (const auto marker = hypervisor::ParseMarker(input)) {
    const auto again = hypervisor::ParseMarker(hypervisor::WriteMarker(*marker));
    CHECK(again && *again == *marker);
  }
  if (const auto marker = hypervisor::ParseMarkerVolumeName(input)) {
    CHECK(hypervisor::MarkerVolumeName(*marker) == input);
  }
}

void CheckHostUri(std::string_view input) {
  const auto uri = hypervisor::ParseHostUri(input);
  if (!uri) {
    CHECK(uri.error().code == ErrorCode::kInvalid && !uri.error().detail.empty());
    return;
  }
  // Ours alone, of which libvirt hears nothing.
  CHECK(uri->uri.empty() == (uri->kind == hypervisor::HostKind::kSimulated));
  if (uri->uri.empty()) return;
  const auto again = hypervisor::ParseHostUri(uri->uri);
  CHECK_MSG(again && again->kind == uri->kind && again->directory == uri->directory, uri->uri);
}

void CheckLabel(const model::Label& label) {
  auto xml = hypervisor::BuildLabelXml(label);
  CHECK(xml.has_value());
  // As libvirt puts it into the namespace.
  xml->replace(0, std::string_view("<label").size(),
               fmt::format("<label xmlns='{}'", model::kLabelNamespace));
  const auto domain = hypervisor::ParseDomain(
      fmt::format("<domain><name>n</name><uuid>01890a5d-ac96-774b-bcce-b302099a8057</uuid>"
                  "<metadata>{}</metadata></domain>",
                  *xml));
  CHECK_MSG(domain.has_value(), *xml);
  CHECK_MSG(domain->label == label, *xml);
}

}  // namespace

void FuzzNames(std::string_view input) {
  static const model::LedgerId ledger{"0123456789abcdef"};
  CheckHostUri(input);
  CheckMarker(input);
  if (const auto vm = model::VmOfDomainName(ledger, input))
    CHECK(model::DomainName(ledger, *vm) == input);
  if (const auto vm = model::VmOfVolume(ledger, input)) {
    CHECK(model::DiskName(ledger, *vm) == input || model::SeedName(ledger, *vm) == input);
  }
  if (const auto time = ParseRfc3339(input)) CHECK(ParseRfc3339(FormatRfc3339(*time)) == time);
  if (const auto duration = app::ParseDuration(input)) {
    CHECK(app::ParseDuration(app::FormatDuration(*duration)) == duration);
  }
  if (const auto uuid = ParseUuid(input)) CHECK(ParseUuid(ToString(*uuid)) == uuid);
  if (model::IsValidName(input)) CHECK(input.size() <= 63 && hypervisor::FitsInXml(input));
  if (model::IsProjectName(input)) CHECK(input.size() <= 63 && hypervisor::FitsInXml(input));
  if (const auto network = model::ParseNetwork(input)) {
    CHECK(hypervisor::FitsInXml(network->name));
    CHECK(network->name.empty() == (network->kind == model::NetworkKind::kUser));
  }
  if (const auto range = model::ParsePortRange(input)) CHECK(range->Size() > 0);
  if (const auto kind = hypervisor::KindOfFile(input); !kind) {
    CHECK(kind.error().code == ErrorCode::kInvalid && !kind.error().detail.empty());
  }
  hypervisor::HasBootSector(input);
}

void FuzzStoredJson(std::string_view input) {
  CheckStays<std::vector<model::Item>>(input, ledger::ItemsFromJson, ledger::ItemsToJson);
  CheckStays<model::Failure>(input, ledger::FailureFromJson, ledger::FailureToJson);
  CheckStays<model::VmSpec>(input, ledger::SpecFromJson, ledger::SpecToJson);
  CheckStays<std::map<std::string, std::string>>(input, ledger::LabelsFromJson,
                                                 ledger::LabelsToJson);
  CheckStays<std::vector<std::string>>(input, ledger::AddressesFromJson, ledger::AddressesToJson);
  if (const auto reserved = ledger::ForwardsFromJson(input)) {
    const auto again =
        ledger::ForwardsFromJson(ledger::ForwardsToJson(reserved->forwards, reserved->moves));
    CHECK(again && again->forwards == reserved->forwards && again->moves == reserved->moves);
  }
}

void FuzzDomainXml(std::string_view input) {
  if (hypervisor::FitsInXml(input)) {
    const std::string element = "<a>" + hypervisor::EscapeXml(input) + "</a>";
    const auto document = hypervisor::ParseXml(element);
    CHECK_MSG(document != nullptr, element);
    CHECK_MSG(hypervisor::XmlText(xmlDocGetRootElement(document.get())) == input, element);
  }
  const auto domain = hypervisor::ParseDomain(input);
  if (!domain) return;
  CHECK(hypervisor::FitsInXml(domain->name));
  if (domain->label) CheckLabel(*domain->label);
}

// Of the command line: whatever the file says, it is understood or told to be wrong.
void ReadAsClients(const std::string& path) {
  const auto settings = app::ReadClientSettings({}, [&path](const char* name) {
    return name == std::string_view("VMONCE_CLIENT_CONFIG") ? std::optional(path) : std::nullopt;
  });
  if (settings) {
    CHECK(!settings->url.empty() && !settings->explanation.empty());
  } else {
    CHECK(!settings.error().empty() && !settings.error().front().Format().empty());
  }
}

// A file of the service's, or of the command line; lines that begin with "--set " are overrides.
void FuzzConfiguration(std::string_view input) {
  static const TempDir directory;
  static const std::string path = directory.File("vmonce.toml");
  std::string file;
  std::vector<std::string> overrides;
  constexpr std::string_view kOverride = "--set ";
  for (std::string_view rest = input; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    if (line.starts_with(kOverride)) {
      overrides.emplace_back(line.substr(kOverride.size(), line.find('\n') - kOverride.size()));
    } else {
      file += line;
    }
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << file;
  ReadAsClients(path);
  const auto config =
      app::ReadConfig(path, overrides, [](const char*) { return std::optional<std::string>(); });
  if (config) {
    CHECK(!config->hosts.empty());
    CHECK(!config->explanation.empty());
    return;
  }
  CHECK(!config.error().empty() && config.error().size() <= model::limits::kConfigMistakes);
  for (const app::ConfigMistake& mistake : config.error()) {
    CHECK(!mistake.text.empty() && !mistake.Format().empty());
  }
}

}  // namespace vmonce::fuzz
