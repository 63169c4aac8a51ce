#include "hypervisor/simulated_store.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/json.h"
#include "hypervisor/marker.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

namespace json = boost::json;

constexpr std::size_t kDomainFileBytes = 1 << 20;  // Labels, names and a console of a few lines.

std::string MarkerFile(const std::string& directory) { return directory + "/marker.json"; }
std::string DomainsPath(const std::string& directory) { return directory + "/domains"; }
std::string VolumesPath(const std::string& directory) { return directory + "/volumes"; }

json::object OriginToJson(const model::Origin& origin) {
  return {{"name", origin.name},
          {"count", origin.count},
          {"desired", ToString(origin.desired)},
          {"restart", ToString(origin.restart)},
          {"face", origin.face},
          {"fingerprint_version", origin.fingerprint_version},
          {"disk_gib", origin.disk_gib},
          {"image_id", origin.image_id},
          {"image", origin.image},
          {"disk_path", origin.disk_path},
          {"disk_format", origin.disk_format}};
}

json::object LabelToJson(const model::Label& label) {
  json::object object{{"ledger", label.ledger.value},
                      {"host", label.host.value},
                      {"project", label.project.value},
                      {"key_hash", label.key_hash},
                      {"fingerprint", label.fingerprint},
                      {"operation", ToString(label.operation)},
                      {"index", label.index},
                      {"fence", label.fence.value},
                      {"sequence", label.sequence}};
  if (label.origin) object["origin"] = OriginToJson(*label.origin);
  return object;
}

std::string Text(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::int64_t Number(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

std::optional<model::Origin> OriginFromJson(const json::object& label) {
  const json::value* value = label.if_contains("origin");
  if (value == nullptr || !value->is_object()) return std::nullopt;
  const json::object& object = value->get_object();
  return model::Origin{
      .name = Text(object, "name"),
      .count = static_cast<int>(Number(object, "count")),
      .desired = model::ParseDesired(Text(object, "desired")).value_or(model::Desired::kRunning),
      .restart = model::ParseRestartPolicy(Text(object, "restart"))
                     .value_or(model::RestartPolicy::kHostFailure),
      .face = Text(object, "face"),
      .fingerprint_version = static_cast<int>(Number(object, "fingerprint_version")),
      .disk_gib = static_cast<int>(Number(object, "disk_gib")),
      .image_id = Text(object, "image_id"),
      .image = Text(object, "image"),
      .disk_path = Text(object, "disk_path"),
      .disk_format = Text(object, "disk_format")};
}

std::optional<model::Label> LabelFromJson(const json::object& object) {
  const auto operation = ParseUuid(Text(object, "operation"));
  if (!operation) return std::nullopt;
  return model::Label{.ledger = {Text(object, "ledger")},
                      .host = {Text(object, "host")},
                      .project = {Text(object, "project")},
                      .key_hash = Text(object, "key_hash"),
                      .fingerprint = Text(object, "fingerprint"),
                      .operation = {*operation},
                      .index = static_cast<int>(Number(object, "index")),
                      .fence = {Number(object, "fence")},
                      .sequence = Number(object, "sequence"),
                      .origin = OriginFromJson(object)};
}

json::array ForwardsToJson(const std::vector<model::Forward>& forwards) {
  json::array array;
  for (const model::Forward& forward : forwards) {
    array.push_back(json::object{{"protocol", ToString(forward.protocol)},
                                 {"guest_port", forward.guest_port},
                                 {"host_port", forward.host_port},
                                 {"host_address", forward.host_address}});
  }
  return array;
}

std::vector<model::Forward> ForwardsFromJson(const json::object& object) {
  std::vector<model::Forward> forwards;
  const json::value* array = object.if_contains("forwards");
  if (array == nullptr || !array->is_array()) return forwards;
  for (const json::value& element : array->get_array()) {
    if (!element.is_object()) continue;
    const json::object& one = element.get_object();
    forwards.push_back(
        {.guest_port = static_cast<int>(Number(one, "guest_port")),
         .protocol = model::ParseProtocol(Text(one, "protocol")).value_or(model::Protocol::kTcp),
         .host_port = static_cast<int>(Number(one, "host_port")),
         .host_address = Text(one, "host_address")});
  }
  return forwards;
}

std::string DomainToText(const SimulatedDomain& domain) {
  json::object object{{"id", ToString(domain.id)},
                      {"name", domain.name},
                      {"power", ToString(domain.power)},
                      {"mac", domain.mac},
                      {"cpus", domain.cpus},
                      {"memory_mib", domain.memory_mib},
                      {"network", domain.network},
                      {"kernel_path", domain.kernel_path},
                      {"console", domain.console},
                      {"starts", domain.starts},
                      {"stopped_by", ToString(domain.stopped_by)}};
  if (domain.label) object["label"] = LabelToJson(*domain.label);
  if (!domain.forwards.empty()) object["forwards"] = ForwardsToJson(domain.forwards);
  json::array volumes;
  for (const std::string& volume : domain.volumes) volumes.emplace_back(volume);
  object["volumes"] = std::move(volumes);
  return json::serialize(object);
}

std::optional<SimulatedDomain> DomainFromJson(const json::value& value) {
  if (!value.is_object()) return std::nullopt;
  const json::object& object = value.get_object();
  const auto id = ParseUuid(Text(object, "id"));
  const auto power = model::ParseObserved(Text(object, "power"));
  if (!id || !power) return std::nullopt;
  SimulatedDomain domain{
      .id = {*id},
      .name = Text(object, "name"),
      .power = *power,
      .mac = Text(object, "mac"),
      .cpus = static_cast<int>(Number(object, "cpus")),
      .memory_mib = static_cast<int>(Number(object, "memory_mib")),
      .network = Text(object, "network"),
      .kernel_path = Text(object, "kernel_path"),
      .console = Text(object, "console"),
      .starts = Number(object, "starts"),
      .stopped_by =
          model::ParseStopCause(Text(object, "stopped_by")).value_or(model::StopCause::kNone)};
  if (const json::value* label = object.if_contains("label"); label && label->is_object()) {
    domain.label = LabelFromJson(label->get_object());
  }
  domain.forwards = ForwardsFromJson(object);
  if (const json::value* volumes = object.if_contains("volumes"); volumes && volumes->is_array()) {
    for (const json::value& name : volumes->get_array()) {
      if (name.is_string()) domain.volumes.emplace_back(name.get_string());
    }
  }
  return domain;
}

Result<std::optional<model::HostMarker>> LoadMarker(const std::string& directory) {
  auto text = ReadWholeFile(MarkerFile(directory), model::limits::kMarkerBytes);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) return std::nullopt;
    return Context("the simulated host's marker", text.error());
  }
  auto marker = ParseMarker(*text);
  if (!marker) return std::unexpected(marker.error());
  return *marker;
}

Result<SimulatedDomain> LoadDomain(const std::string& path) {
  auto text = ReadWholeFile(path, kDomainFileBytes);
  if (!text) return std::unexpected(text.error());
  auto value = ParseStrictJson(*text);
  if (!value) return std::unexpected(value.error());
  auto domain = DomainFromJson(*value);
  if (!domain) return Fail(ErrorCode::kInternal, path + " is no simulated domain");
  return *std::move(domain);
}

}  // namespace

Result<SimulatedState> LoadSimulatedState(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (const auto& path : {DomainsPath(directory), VolumesPath(directory)}) {
    fs::create_directories(path, failed);
    if (failed) return std::unexpected(ErrnoError(failed.value(), path));
  }
  SimulatedState state;
  auto marker = LoadMarker(directory);
  if (!marker) return std::unexpected(marker.error());
  state.marker = *marker;
  for (auto entry = fs::directory_iterator(DomainsPath(directory), failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    if (entry->path().extension() != ".json") continue;  // A temporary file of a crash.
    auto domain = LoadDomain(entry->path().string());
    if (!domain) return Fail(ErrorCode::kInternal, domain.error().detail);
    state.domains.push_back(*std::move(domain));
  }
  if (failed) return std::unexpected(ErrnoError(failed.value(), DomainsPath(directory)));
  for (auto entry = fs::directory_iterator(VolumesPath(directory), failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) state.volumes.insert(name);
  }
  if (failed) return std::unexpected(ErrnoError(failed.value(), VolumesPath(directory)));
  return state;
}

Status StoreMarker(const std::string& directory, const model::HostMarker& marker) {
  return CreateFileAtomically(MarkerFile(directory), WriteMarker(marker), 0600);
}

Status StoreDomain(const std::string& directory, const model::VmId& id,
                   const std::optional<SimulatedDomain>& domain) {
  const std::string path = DomainsPath(directory) + "/" + ToString(id) + ".json";
  if (domain) return WriteFileAtomically(path, DomainToText(*domain), 0600);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return std::unexpected(ErrnoError(errno, path));
}

Status StoreVolume(const std::string& directory, const std::string& name, bool is_there) {
  const std::string path = VolumesPath(directory) + "/" + name;
  if (is_there) return WriteFileAtomically(path, "", 0600);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return std::unexpected(ErrnoError(errno, path));
}

}  // namespace vmonce::hypervisor
