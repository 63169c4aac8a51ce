#include "model/intent.h"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "model/limits.h"

namespace vmonce::model {
namespace {

constexpr int kIntentVersion = 1;
constexpr std::size_t kIntentMembers = 16;
// Of the values while they are written; more is taken from the heap.
constexpr std::size_t kIntentBytes = 4 * 1024;

bool IsLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// In the order asked: it is the order in which they are shown.
boost::json::array ForwardArray(const std::vector<Forward>& forwards) {
  boost::json::array array;
  for (const Forward& forward : forwards) {
    array.push_back(boost::json::object{{"guest_port", forward.guest_port},
                                        {"host_port", forward.host_port},
                                        {"protocol", ToString(forward.protocol)}});
  }
  return array;
}

}  // namespace

std::string Serialise(const CreateIntent& intent) {
  std::array<unsigned char, kIntentBytes> memory;
  boost::json::monotonic_resource resource(memory.data(), memory.size());
  boost::json::object json(&resource);
  json.reserve(kIntentMembers);
  json["version"] = kIntentVersion;
  json["name"] = intent.name;
  json["image"] = intent.image;
  json["count"] = intent.count;
  json["cpus"] = intent.cpus;
  json["memory_mib"] = intent.memory_mib;
  json["disk_gib"] = intent.disk_gib;
  json["hostname"] = intent.hostname;
  boost::json::array& keys = json["ssh_keys"].emplace_array();
  for (const std::string& key : intent.ssh_keys) keys.emplace_back(key);
  json["network"] = intent.network;
  if (!intent.forwards.empty()) json["forward"] = ForwardArray(intent.forwards);
  boost::json::object& labels = json["labels"].emplace_object();
  for (const auto& [key, value] : intent.labels) labels[key] = value;
  const CreateIntent unasked;
  if (intent.desired != unasked.desired) json["desired"] = ToString(intent.desired);
  if (intent.restart != unasked.restart) json["restart"] = ToString(intent.restart);
  if (intent.user_data_mac) {
    json["user_data_mac"] = ToHex(*intent.user_data_mac);
  } else {
    json["user_data_mac"] = nullptr;
  }
  return CanonicalJson(json);
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
