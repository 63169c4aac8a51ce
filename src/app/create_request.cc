#include "app/create_request.h"

#include <fmt/format.h>

#include <charconv>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "model/forward.h"
#include "model/forward_limits.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;
using boost::json::object;

struct Unit {
  char letter;  // Upper case.
  std::int64_t factor;
};

// A number, then nothing or one of the units, each also as "GB" or "GiB": all powers of 1024.
std::optional<int> ParseSize(std::string_view text, std::initializer_list<Unit> units) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || number <= 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  std::int64_t factor = 1;
  if (!text.empty()) {
    const char letter = static_cast<char>(text[0] & ~0x20);
    const auto* unit = std::ranges::find(units, letter, &Unit::letter);
    const auto rest = text.substr(1);
    if (unit == units.end() || (!rest.empty() && rest != "B" && rest != "iB")) return std::nullopt;
    factor = unit->factor;
  }
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  if (number > kMax / factor) return std::nullopt;
  return static_cast<int>(number * factor);
}

// One public key a line; blank lines and comments are left out.
Status ReadSshKeys(const std::string& path, boost::json::array& keys) {
  const auto text = ReadWholeFile(path, limits::kSshKeys * limits::kSshKeyBytes);
  if (!text) return std::unexpected(text.error());
  if (text->find("PRIVATE KEY") != std::string::npos) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} is a private key; give the public one ({}.pub)", path, path));
  }
  for (std::string_view rest = *text; !rest.empty();) {
    const auto end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with('#')) keys.emplace_back(line);
  }
  return {};
}

Status AddUserData(const std::string& path, object& body) {
  const auto bytes = ReadWholeFile(path, limits::kUserDataBytes);
  if (!bytes) return std::unexpected(bytes.error());
  // What the server's parser would refuse as a JSON string is not sent as one.
  const bool is_text =
      ParseStrictJson(boost::json::serialize(boost::json::string(*bytes))).has_value();
  if (is_text) {
    body["user_data"] = *bytes;
  } else {
    body["user_data_base64"] = ToBase64(*bytes);
  }
  return {};
}

Status AddLabels(const std::vector<std::string>& labels, object& body) {
  object parsed;
  for (const std::string& label : labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Fail(ErrorCode::kInvalid, fmt::format("--label {}: write KEY=VALUE", label));
    }
    if (parsed.contains(label.substr(0, equals))) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("--label {}: this key is given twice", label.substr(0, equals)));
    }
    parsed[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (!parsed.empty()) body["labels"] = std::move(parsed);
  return {};
}

Status AddSizes(const CreateFields& fields, object& body) {
  if (fields.cpus) body["cpus"] = *fields.cpus;
  if (fields.count) body["count"] = *fields.count;
  if (!fields.memory.empty()) {
    const auto mib = ParseMemoryMib(fields.memory);
    if (!mib) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("--memory {}: write MiB, or a size like 2G", fields.memory));
    }
    body["memory_mib"] = *mib;
  }
  if (!fields.disk.empty()) {
    const auto gib = ParseDiskGib(fields.disk);
    if (!gib) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("--disk {}: write GiB, or a size like 10G", fields.disk));
    }
    body["disk_gib"] = *gib;
  }
  return {};
}

std::optional<int> ParsePort(std::string_view text) {
  int port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool is_whole = failure == std::errc() && end == text.data() + text.size();
  if (!is_whole || port < 1 || port > limits::kPortMax) return std::nullopt;
  return port;
}

Status AddForwards(const std::vector<std::string>& forwards, object& body) {
  boost::json::array parsed;
  for (const std::string& forward : forwards) {
    auto one = ParseForward(forward);
    if (!one) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("--forward {}: write [HOST_PORT:]GUEST_PORT[/udp], such as 22 or "
                              "8022:22",
                              forward));
    }
    parsed.push_back(*std::move(one));
  }
  if (!parsed.empty()) body["forward"] = std::move(parsed);
  return {};
}

}  // namespace

std::optional<object> ParseForward(std::string_view text) {
  object forward;
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    const auto protocol = model::ParseProtocol(text.substr(slash + 1));
    if (!protocol) return std::nullopt;
    forward["protocol"] = ToString(*protocol);
    text = text.substr(0, slash);
  }
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    const auto host_port = ParsePort(text.substr(0, colon));
    if (!host_port) return std::nullopt;
    forward["host_port"] = *host_port;
    text = text.substr(colon + 1);
  }
  const auto guest_port = ParsePort(text);
  if (!guest_port) return std::nullopt;
  forward["guest_port"] = *guest_port;
  return forward;
}

std::optional<int> ParseMemoryMib(std::string_view text) {
  return ParseSize(text, {{'M', 1}, {'G', 1 << 10}, {'T', 1 << 20}});
}

std::optional<int> ParseDiskGib(std::string_view text) {
  return ParseSize(text, {{'G', 1}, {'T', 1 << 10}});
}

Result<object> BuildCreateBody(const CreateFields& fields) {
  if (fields.image.empty()) {
    return Fail(ErrorCode::kInvalid, "--image is needed; `vmonce images` lists what there is");
  }
  object body;
  body["image"] = fields.image;
  if (!fields.name.empty()) body["name"] = fields.name;
  if (!fields.hostname.empty()) body["hostname"] = fields.hostname;
  if (!fields.desired.empty()) body["desired"] = fields.desired;
  if (!fields.restart.empty()) body["restart"] = fields.restart;
  if (const Status added = AddSizes(fields, body); !added) return std::unexpected(added.error());
  if (const Status added = AddLabels(fields.labels, body); !added) {
    return std::unexpected(added.error());
  }
  boost::json::array keys;
  for (const std::string& path : fields.ssh_key_files) {
    if (const Status read = ReadSshKeys(path, keys); !read) {
      return Context("--ssh-key", read.error());
    }
  }
  if (!keys.empty()) body["ssh_keys"] = std::move(keys);
  if (!fields.network.empty()) body["network"] = fields.network;
  if (const Status added = AddForwards(fields.forwards, body); !added) {
    return std::unexpected(added.error());
  }
  if (!fields.user_data_file.empty()) {
    if (const Status added = AddUserData(fields.user_data_file, body); !added) {
      return Context("--user-data", added.error());
    }
  }
  return body;
}

}  // namespace vmonce::app
