#include "api/rest/fields.h"

#include <fmt/format.h>

#include "api/rest/network_fields.h"
#include "base/json.h"
#include "base/sha256.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace limits = model::limits;

constexpr std::string_view kNameRule =
    "must be 1 to 63 of a-z, 0-9 and hyphen, without a hyphen at its ends";

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool HasControl(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

// So that `label=k=v` in a query, a shell and a metric can all say it.
bool IsLabelKey(std::string_view key) {
  if (key.empty() || key.size() > limits::kLabelKeyBytes || !IsLetterOrDigit(key.front())) {
    return false;
  }
  return std::ranges::all_of(key, [](char c) {
    return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

bool IsHostLabel(std::string_view label) {
  if (label.empty() || label.size() > limits::kNameBytes) return false;
  if (label.front() == '-' || label.back() == '-') return false;
  return std::ranges::all_of(label, [](char c) { return IsLetterOrDigit(c) || c == '-'; });
}

int ReadInt(JsonReader& reader, std::string_view name, IntRange range, int fallback) {
  return static_cast<int>(reader.Int(name, range).value_or(fallback));
}

std::string ReadHostname(JsonReader& reader, int count) {
  const std::optional<std::string> hostname =
      reader.String("hostname", {.min_bytes = 1, .max_bytes = limits::kHostnameBytes});
  if (!hostname) return {};
  if (!IsValidHostname(model::ItemName(*hostname, count - 1, count))) {
    reader.AddProblem("hostname", count == 1 ? "must be a host name as RFC 1123 has it"
                                             : "must be a host name as RFC 1123 has it, with the "
                                               "index of the batch added");
  }
  return *hostname;
}

std::vector<std::string> ReadSshKeys(JsonReader& reader) {
  const std::optional<std::vector<std::string>> keys =
      reader.Strings("ssh_keys", {.min = 0, .max = limits::kSshKeys},
                     {.min_bytes = 1, .max_bytes = limits::kSshKeyBytes});
  if (!keys) return {};
  std::vector<FieldProblem> problems;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    if (IsValidSshKey((*keys)[i])) continue;
    problems.push_back({reader.Pointer("ssh_keys", i),
                        fmt::format("element {} of ssh_keys must be one line of a public key, such "
                                    "as \"ssh-ed25519 AAAA… comment\"",
                                    i)});
  }
  reader.Add(std::move(problems));
  return *keys;
}

}  // namespace

model::CreateIntent ReadIntent(JsonReader& reader) {
  model::CreateIntent intent;
  reader.Require({"image"});
  intent.count = ReadInt(reader, "count", {1, limits::kBatchCount}, intent.count);
  intent.name = ReadName(reader, intent.count).value_or("");
  if (const auto image =
          reader.String("image", {.min_bytes = 1, .max_bytes = limits::kImageNameBytes})) {
    intent.image = *image;
    if (HasControl(*image)) reader.AddProblem("image", "must not hold control characters");
  }
  intent.cpus = ReadInt(reader, "cpus", {1, limits::kCpus}, intent.cpus);
  intent.memory_mib =
      ReadInt(reader, "memory_mib", {limits::kMinMemoryMib, limits::kMemoryMib}, intent.memory_mib);
  intent.disk_gib = ReadInt(reader, "disk_gib", {0, limits::kDiskGib}, intent.disk_gib);
  intent.hostname = ReadHostname(reader, intent.count);
  intent.ssh_keys = ReadSshKeys(reader);
  intent.labels = ReadLabels(reader).value_or(std::map<std::string, std::string>());
  intent.desired = ReadDesired(reader).value_or(intent.desired);
  intent.restart = ReadRestart(reader).value_or(intent.restart);
  ReadNetwork(reader, intent);
  return intent;
}

UserData ReadUserData(JsonReader& reader) {
  constexpr std::size_t kBase64Bytes = (limits::kUserDataBytes + 2) / 3 * 4;
  UserData user_data;
  if (const auto text =
          reader.String("user_data", {.min_bytes = 0, .max_bytes = limits::kUserDataBytes})) {
    user_data.member = "user_data";
    user_data.bytes = *text;
  }
  const auto encoded =
      reader.String("user_data_base64", {.min_bytes = 0, .max_bytes = kBase64Bytes});
  if (reader.Has("user_data") && reader.Has("user_data_base64")) {
    reader.AddProblem("user_data_base64", "and user_data exclude each other");
    return user_data;
  }
  if (!encoded) return user_data;
  const std::optional<std::string> decoded = ParseBase64(*encoded);
  if (!decoded) {
    reader.AddProblem("user_data_base64", "must be base64 (RFC 4648 section 4) with its padding");
  } else if (decoded->size() > limits::kUserDataBytes) {
    reader.AddProblem("user_data_base64",
                      fmt::format("must decode to at most {} bytes", limits::kUserDataBytes));
  } else {
    user_data.member = "user_data_base64";
    user_data.bytes = *decoded;
  }
  return user_data;
}

std::optional<std::string> ReadName(JsonReader& reader, int count) {
  // The rule of the name tells more than the bound of its length.
  std::optional<std::string> name =
      reader.String("name", {.min_bytes = 0, .max_bytes = limits::kBodyBytes});
  if (!name) return std::nullopt;
  if (!model::IsValidName(*name)) {
    reader.AddProblem("name", kNameRule);
  } else if (!model::IsValidName(model::ItemName(*name, count - 1, count))) {
    reader.AddProblem("name", fmt::format("is too long for a batch: its last VM would be {}",
                                          model::ItemName(*name, count - 1, count)));
  }
  return name;
}

std::optional<std::map<std::string, std::string>> ReadLabels(JsonReader& reader) {
  auto labels = reader.StringMap("labels", {.min = 0, .max = limits::kLabels},
                                 {.min_bytes = 0, .max_bytes = limits::kLabelValueBytes});
  if (!labels) return std::nullopt;
  std::vector<FieldProblem> problems;
  for (const auto& [key, value] : *labels) {
    const std::string pointer = JsonPointer(reader.Pointer("labels"), key);
    if (!IsLabelKey(key)) {
      problems.push_back({pointer, fmt::format("a name in labels must be 1 to {} letters, digits "
                                               "or -_./ and begin with a letter or digit",
                                               limits::kLabelKeyBytes)});
    }
    if (HasControl(value)) {
      problems.push_back({pointer, "a value in labels must not hold control characters"});
    }
  }
  reader.Add(std::move(problems));
  return labels;
}

std::optional<model::Desired> ReadDesired(JsonReader& reader) {
  const auto word = reader.OneOf("desired", {"running", "stopped"});
  return word ? model::ParseDesired(*word) : std::nullopt;
}

std::optional<model::RestartPolicy> ReadRestart(JsonReader& reader) {
  const auto word = reader.OneOf("restart", {"host-failure", "never"});
  return word ? model::ParseRestartPolicy(*word) : std::nullopt;
}

bool IsValidHostname(std::string_view hostname) {
  if (hostname.size() > limits::kHostnameBytes) return false;
  std::string_view rest = hostname;
  std::string_view label;
  while (true) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    label = rest.substr(0, dot);
    if (!IsHostLabel(label)) return false;
    if (dot == rest.size()) break;
    rest.remove_prefix(dot + 1);
  }
  const bool is_number = std::ranges::all_of(label, IsDigit);
  return !is_number || label.size() == hostname.size();
}

bool IsValidSshKey(std::string_view line) {
  if (HasControl(line)) return false;
  const bool has_type =
      std::ranges::any_of(std::to_array<std::string_view>({"ssh-", "ecdsa-", "sk-"}),
                          [&](std::string_view prefix) { return line.starts_with(prefix); });
  const std::size_t space = line.find(' ');
  if (!has_type || space == std::string_view::npos) return false;
  const std::string_view key = line.substr(space + 1, line.find(' ', space + 1) - space - 1);
  return !key.empty() && ParseBase64(key).has_value();
}

}  // namespace vmonce::rest
