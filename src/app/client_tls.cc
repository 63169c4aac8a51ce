#include "app/client_tls.h"

#include <fmt/format.h>

#include "base/file.h"
#include "model/http_limits.h"

namespace vmonce::app {
namespace {

// libcurl's word for a file that is not there is the same as for one that is damaged.
Status CheckReadable(std::string_view names, const std::string& path) {
  if (path.empty()) return {};
  const auto bytes = ReadWholeFile(path, model::limits::kClientPemBytes);
  if (bytes) return {};
  return Fail(ErrorCode::kInvalid,
              fmt::format("{}: {}; name a readable PEM file", names, bytes.error().detail));
}

}  // namespace

Result<client::TlsIdentity> ReadClientTls(const ClientSettings& settings) {
  const std::pair<std::string_view, const std::string&> files[] = {
      {"--cacert (VMONCE_CACERT)", settings.cacert},
      {"--client-cert (VMONCE_CLIENT_CERT)", settings.client_cert},
      {"--client-key (VMONCE_CLIENT_KEY)", settings.client_key}};
  for (const auto& [names, path] : files) {
    if (Status readable = CheckReadable(names, path); !readable) {
      return std::unexpected(readable.error());
    }
  }
  if (settings.client_cert.empty() != settings.client_key.empty()) {
    return Fail(ErrorCode::kInvalid,
                "--client-cert and --client-key (VMONCE_CLIENT_CERT, VMONCE_CLIENT_KEY) go "
                "together: name both files, or neither");
  }
  return client::TlsIdentity{settings.cacert, settings.client_cert, settings.client_key};
}

}  // namespace vmonce::app
