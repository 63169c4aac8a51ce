// Which names this server answers for. A browser that was lured by DNS rebinding sends the
// attacker's name in Host, and a page of another site sends its own in Origin: both are refused
// here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vmonce::http {

// The name of "name[:port]" in lower case, IPv6 in its brackets; nothing when malformed (RFC 9110
// section 7.2).
std::optional<std::string> HostName(std::string_view authority);

// `allowed` holds names as HostName gives them. Any port will do: forwarded ports are common, and
// the name is what an attacker cannot choose.
bool IsAllowedHost(std::string_view authority, const std::vector<std::string>& allowed);

// The host and port of an Origin header (RFC 6454 section 7) of http or https; empty, which no host
// is, for any other, "null" among them.
std::string_view OriginAuthority(std::string_view origin);

// localhost, 127.0.0.1, [::1].
std::vector<std::string> LoopbackHosts();

}  // namespace vmonce::http
