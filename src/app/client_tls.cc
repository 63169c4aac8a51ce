#include "app/client_tls.h"

#include <fmt/format.h>

#include "base/file.h"
#include "model/http_limits.h"

namespace vmonce::app {
namespace {

struct Setting {
  std::string flag;
  const char* flag_name;
  const char* variable;
};

// libcurl's word for a file that is not there is the same as for one that is damaged.
Result<std::string> ReadableFile(const Setting& setting, const Environ& environment) {
  std::string path = setting.flag;
  if (path.empty()) path = environment(setting.variable).value_or("");
  if (path.empty()) return path;
  const auto bytes = ReadWholeFile(path, model::limits::kClientPemBytes);
  if (bytes) return path;
  return Fail(ErrorCode::kInvalid,
              fmt::format("{}: {}; name a readable PEM file",
                          setting.flag.empty() ? setting.variable : setting.flag_name,
                          bytes.error().detail));
}

}  // namespace

Result<client::TlsIdentity> ReadClientTls(const ClientTlsFlags& flags, const Environ& environment) {
  auto ca = ReadableFile({flags.cacert, "--cacert", "VMONCE_CACERT"}, environment);
  if (!ca) return std::unexpected(ca.error());
  auto certificate =
      ReadableFile({flags.client_cert, "--client-cert", "VMONCE_CLIENT_CERT"}, environment);
  if (!certificate) return std::unexpected(certificate.error());
  auto key = ReadableFile({flags.client_key, "--client-key", "VMONCE_CLIENT_KEY"}, environment);
  if (!key) return std::unexpected(key.error());
  if (certificate->empty() != key->empty()) {
    return Fail(ErrorCode::kInvalid,
                "--client-cert and --client-key (VMONCE_CLIENT_CERT, VMONCE_CLIENT_KEY) go "
                "together: name both files, or neither");
  }
  return client::TlsIdentity{std::move(*ca), std::move(*certificate), std::move(*key)};
}

}  // namespace vmonce::app
