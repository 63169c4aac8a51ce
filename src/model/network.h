// What a VM's network interface is attached to, as requests and hosts name it: "user" (user-mode
// networking, behind the host), "NAME" (a libvirt network) or "bridge:NAME" (a bridge of the host).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vmonce::model {

enum class NetworkKind { kUser, kNamed, kBridge };

struct Network {
  NetworkKind kind = NetworkKind::kUser;
  std::string name;  // Empty for kUser.

  bool operator==(const Network&) const = default;
};

inline constexpr std::string_view kUserNetwork = "user";

// std::nullopt for what is none of the three. Names are letters, digits, '.', '-' and '_', not
// beginning with a hyphen or dot.
std::optional<Network> ParseNetwork(std::string_view text);

}  // namespace vmonce::model
