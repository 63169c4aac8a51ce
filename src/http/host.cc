#include "http/host.h"

#include <algorithm>

namespace vmonce::http {
namespace {

bool IsPort(std::string_view text) {
  return text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool IsNameChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
}

bool IsIpv6Char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
}

}  // namespace

std::optional<std::string> HostName(std::string_view authority) {
  std::string name;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    name = authority.substr(0, close + 1);
    port = authority.substr(close + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    name = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  if (!port.empty() && (port.front() != ':' || !IsPort(port.substr(1)))) return std::nullopt;
  if (name.starts_with('[')) {
    const std::string_view inside = std::string_view(name).substr(1, name.size() - 2);
    if (inside.empty() || !std::ranges::all_of(inside, IsIpv6Char)) return std::nullopt;
    return name;
  }
  if (name.empty() || !std::ranges::all_of(name, IsNameChar)) return std::nullopt;
  return name;
}

bool IsAllowedHost(std::string_view authority, const std::vector<std::string>& allowed) {
  const std::optional<std::string> name = HostName(authority);
  return name && std::ranges::find(allowed, *name) != allowed.end();
}

std::string_view OriginAuthority(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) return origin.substr(scheme.size());
  }
  return {};
}

std::vector<std::string> LoopbackHosts() { return {"localhost", "127.0.0.1", "[::1]"}; }

}  // namespace vmonce::http
