// Where a client command takes its settings from: a flag, then the environment (VMONCE_*), then the
// profile in the person's own file, then /etc. Secrets are never among them, only the names of
// their files.
//
//   # ~/.config/vmonce/client.toml; /etc/vmonce/client.toml has the same form
//   default_profile = "lab"        # Without --profile and VMONCE_PROFILE.
//   output = "table"               # Keys out here count for every profile.
//   [profile.lab]
//   url = "https://lab.example:8443"
//   cacert = "lab-authority.pem"   # Beside this file.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"
#include "app/output.h"
#include "app/terminal.h"

namespace vmonce::app {

inline constexpr std::string_view kDefaultUrl = "http://127.0.0.1:8080";
inline constexpr std::string_view kSystemClientPath = "/etc/vmonce/client.toml";

// As given on the command line; "" where nothing was.
struct ClientFlags {
  std::string url, output, profile, cacert, client_cert, client_key;
};

struct ClientSettings {
  std::string url;  // Of NormaliseBaseUrl().
  OutputFormat output = OutputFormat::kTable;
  std::string profile;                          // "" when none was chosen.
  std::string cacert, client_cert, client_key;  // Names of PEM files; "" for none.

  std::vector<ConfigValue> explanation;  // "client.url", ... and who said so.
};

// VMONCE_CLIENT_CONFIG names one file to be read instead of the person's own and the one in /etc. A
// file of those two that is not there says nothing. A profile that was asked for must be in one of
// them. Every mistake of a file that is read is told, also beside the profile in use.
std::expected<ClientSettings, std::vector<ConfigMistake>> ReadClientSettings(
    const ClientFlags& flags, const Environ& environment);

// $XDG_CONFIG_HOME/vmonce/client.toml, or ~/.config/vmonce/client.toml; "" without a home.
std::string PersonalClientPath(const Environ& environment);

}  // namespace vmonce::app
