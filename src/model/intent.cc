#include "model/intent.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <map>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "model/limits.h"

namespace vmonce::model {
namespace {

constexpr int kIntentVersion = 1;
constexpr std::size_t kUsualBytes = 512;

bool IsLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

void WriteForwards(JsonWriter& json, const std::vector<Forward>& forwards) {
  json.BeginArray();
  // In the order asked: it is the order in which they are shown.
  for (const Forward& forward : forwards) {
    json.BeginObject();
    json.Member("guest_port", forward.guest_port);
    json.Member("host_port", forward.host_port);
    json.Member("protocol", ToString(forward.protocol));
    json.EndObject();
  }
  json.EndArray();
}

// In the order of UTF-16, which is not the map's.
std::string CanonicalLabels(const std::map<std::string, std::string>& labels) {
  boost::json::object object;
  for (const auto& [name, value] : labels) object[name] = value;
  return CanonicalJson(object);
}

}  // namespace

// The members stand in the order of their names, as RFC 8785 wants them.
std::string Serialise(const CreateIntent& intent) {
  const CreateIntent unasked;
  std::string text;
  text.reserve(kUsualBytes);
  JsonWriter json(text);
  json.BeginObject();
  json.Member("count", intent.count);
  json.Member("cpus", intent.cpus);
  if (intent.desired != unasked.desired) json.Member("desired", ToString(intent.desired));
  json.Member("disk_gib", intent.disk_gib);
  if (!intent.forwards.empty()) {
    json.Name("forward");
    WriteForwards(json, intent.forwards);
  }
  json.Member("hostname", intent.hostname);
  json.Member("image", intent.image);
  json.Name("labels");
  json.Raw(intent.labels.empty() ? "{}" : CanonicalLabels(intent.labels));
  json.Member("memory_mib", intent.memory_mib);
  json.Member("name", intent.name);
  json.Member("network", intent.network);
  if (intent.restart != unasked.restart) json.Member("restart", ToString(intent.restart));
  json.Name("ssh_keys");
  json.BeginArray();
  for (const std::string& key : intent.ssh_keys) json.Value(key);
  json.EndArray();
  json.Name("user_data_mac");
  if (intent.user_data_mac) {
    json.Value(ToHex(*intent.user_data_mac));
  } else {
    json.Null();
  }
  json.Member("version", kIntentVersion);
  json.EndObject();
  return text;
}

std::string ItemName(const std::string& name, int index, int count) {
  CHECK(index >= 0 && index < count);
  return count == 1 ? name : fmt::format("{}-{}", name, index);
}

std::string GeneratedName(const VmId& vm) {
  constexpr std::size_t kDigits = 12;
  const std::string id = ToString(vm);
  return "vm-" + id.substr(id.size() - kDigits);
}

bool IsValidName(std::string_view name) {
  if (name.empty() || name.size() > limits::kNameBytes) return false;
  for (const char c : name) {
    if (!IsLetterOrDigit(c) && c != '-') return false;
  }
  return name.front() != '-' && name.back() != '-';
}

}  // namespace vmonce::model
