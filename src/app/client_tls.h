// Which certificates a client command believes and shows.
#pragma once

#include "app/client_settings.h"
#include "base/result.h"
#include "client/curl_transport.h"

namespace vmonce::app {

// kInvalid, with the repair, when a file cannot be read, or a certificate stands without its key.
Result<client::TlsIdentity> ReadClientTls(const ClientSettings& settings);

}  // namespace vmonce::app
