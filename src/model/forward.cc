#include "model/forward.h"

#include <charconv>

#include "base/check.h"
#include "model/forward_limits.h"

namespace vmonce::model {
namespace {

std::optional<int> ParsePort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (port < limits::kHostPortMin || port > limits::kPortMax) return std::nullopt;
  return port;
}

}  // namespace

std::string_view ToString(Protocol protocol) {
  switch (protocol) {
    case Protocol::kTcp: return "tcp";
    case Protocol::kUdp: return "udp";
  }
  return "tcp";
}

std::optional<Protocol> ParseProtocol(std::string_view text) {
  if (text == "tcp") return Protocol::kTcp;
  if (text == "udp") return Protocol::kUdp;
  return std::nullopt;
}

std::optional<PortRange> ParsePortRange(std::string_view text) {
  const std::size_t hyphen = text.find('-');
  if (hyphen == std::string_view::npos) return std::nullopt;
  const auto first = ParsePort(text.substr(0, hyphen));
  const auto last = ParsePort(text.substr(hyphen + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return PortRange{*first, *last};
}

int PortAt(const PortRange& range, const VmId& vm, int turn) {
  CHECK(turn >= 0 && turn < range.Size());
  // The last bytes of a UUIDv7 are chance.
  const auto& bytes = vm.value.bytes;
  const int begin = (bytes[13] << 16 | bytes[14] << 8 | bytes[15]) % range.Size();
  return range.first + (begin + turn) % range.Size();
}

}  // namespace vmonce::model
