#include "model/network.h"

#include <algorithm>

#include "model/forward_limits.h"

namespace vmonce::model {
namespace {

constexpr std::string_view kBridgePrefix = "bridge:";

bool IsName(std::string_view name, std::size_t most) {
  if (name.empty() || name.size() > most || name.front() == '-' || name.front() == '.') {
    return false;
  }
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

}  // namespace

std::optional<Network> ParseNetwork(std::string_view text) {
  if (text == kUserNetwork) return Network{};
  if (text.starts_with(kBridgePrefix)) {
    const std::string_view name = text.substr(kBridgePrefix.size());
    if (!IsName(name, limits::kBridgeBytes)) return std::nullopt;
    return Network{NetworkKind::kBridge, std::string(name)};
  }
  if (!IsName(text, limits::kNetworkBytes)) return std::nullopt;
  return Network{NetworkKind::kNamed, std::string(text)};
}

}  // namespace vmonce::model
