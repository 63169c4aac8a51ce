#include "app/config_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

constexpr std::array<std::string_view, 2> kClientCertWords = {"required", "optional"};

bool IsIpAddress(const std::string& address) {
  in6_addr any{};
  return inet_pton(AF_INET, address.c_str(), &any) == 1 ||
         inet_pton(AF_INET6, address.c_str(), &any) == 1;
}

// What "listen" says; port -1 when it is not ADDRESS:PORT.
std::pair<std::string, int> SplitListen(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return {"", -1};
  std::string address = listen.substr(0, colon);
  // Without the brackets, which group of an IPv6 address is the port is a guess.
  const bool is_bracketed = address.starts_with('[') && address.ends_with(']');
  if (is_bracketed) address = address.substr(1, address.size() - 2);
  if (address.empty() || (!is_bracketed && address.contains(':'))) return {"", -1};
  int port = -1;
  const char* const end = listen.data() + listen.size();
  const auto [rest, error] = std::from_chars(listen.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end || port < 0 || port > 65535) port = -1;
  return {address == "localhost" ? "127.0.0.1" : std::move(address), port};
}

void ReadListen(ConfigTableReader& table, ServerConfig& server) {
  std::string listen = "127.0.0.1:8080";
  if (!table.Text("listen", listen)) return;
  auto [address, port] = SplitListen(listen);
  if (port < 0) {
    table.Mistake("listen",
                  fmt::format("\"listen\" in [server] is not ADDRESS:PORT: \"{}\"", listen),
                  "write \"127.0.0.1:8080\" or \"[::1]:8080\"");
    return;
  }
  if (!IsIpAddress(address)) {
    table.Mistake("listen", fmt::format("\"{}\" in \"listen\" is no IP address", address),
                  fmt::format("write \"127.0.0.1:{}\" for this machine alone, \"0.0.0.0:{}\" for "
                              "every IPv4 address of it",
                              port, port));
    return;
  }
  server.address = std::move(address);
  server.port = static_cast<std::uint16_t>(port);
}

void ReadAllowedHosts(ConfigTableReader& table, ServerConfig& server) {
  table.Texts("allowed_hosts", limits::kAllowedHosts, server.allowed_hosts);
  for (std::string& host : server.allowed_hosts) {
    std::ranges::transform(host, host.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const bool is_ipv6 = host.starts_with('[') && host.ends_with(']');
    const bool is_name = !host.empty() && std::ranges::all_of(host, [is_ipv6](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
             (is_ipv6 && (c == ':' || c == '[' || c == ']'));
    });
    if (is_name) continue;
    table.Mistake("allowed_hosts", fmt::format("\"{}\" in \"allowed_hosts\" is no host name", host),
                  "write names without scheme and port, such as \"vmonce.example\"");
  }
}

void ReadTls(ConfigTableReader& table, ServerConfig& server) {
  table.OptionalPath("tls_cert", server.tls_cert);
  table.OptionalPath("tls_key", server.tls_key);
  table.OptionalPath("client_ca", server.client_ca);
  std::string client_cert(kClientCertWords[0]);
  table.Choice("client_cert", kClientCertWords, client_cert);
  server.is_client_cert_required = client_cert == kClientCertWords[0];
  if (server.tls_cert.empty() != server.tls_key.empty()) {
    const bool lacks_key = server.tls_key.empty();
    table.Mistake(lacks_key ? "tls_cert" : "tls_key",
                  fmt::format("\"{}\" stands without \"{}\"", lacks_key ? "tls_cert" : "tls_key",
                              lacks_key ? "tls_key" : "tls_cert"),
                  "TLS needs both: a certificate, and the key that it was made for");
  }
  if (!server.client_ca.empty() && !server.HasTls()) {
    table.Mistake("client_ca", "\"client_ca\" asks clients for certificates, which needs TLS",
                  "set tls_cert and tls_key, too");
  }
  if (!server.is_client_cert_required && server.client_ca.empty()) {
    table.Mistake("client_cert",
                  "\"client_cert\" = \"optional\" says nothing without \"client_ca\"",
                  "name the authority of your clients with client_ca, or remove client_cert");
  }
}

void CheckExposure(ConfigTableReader& table, const ServerConfig& server) {
  if (!server.IsExposed() || server.HasTls() || server.behind_tls_proxy) return;
  table.Mistake(
      "listen",
      fmt::format("\"{}\" is reached from other machines, and nothing protects what is said "
                  "there: tokens and user data would pass in clear",
                  server.address),
      fmt::format("set tls_cert and tls_key; or, behind a proxy that speaks TLS, "
                  "behind_tls_proxy = true (--behind-tls-proxy); or listen on \"127.0.0.1:{}\" and "
                  "reach it by ssh -L {}:127.0.0.1:{} HOST",
                  server.port, server.port, server.port));
}

}  // namespace

bool IsLoopbackAddress(std::string_view address) {
  const std::string text(address);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

void ReadServerConfig(ConfigTableReader table, ServerConfig& server) {
  ReadListen(table, server);
  ReadAllowedHosts(table, server);
  ReadTls(table, server);
  table.Boolean("behind_tls_proxy", server.behind_tls_proxy);
  CheckExposure(table, server);
  table.Finish();
}

}  // namespace vmonce::app
