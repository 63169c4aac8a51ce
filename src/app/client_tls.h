// Which certificates a client command believes and shows: files named by flags or by the
// environment.
#pragma once

#include <string>

#include "app/terminal.h"
#include "base/result.h"
#include "client/curl_transport.h"

namespace vmonce::app {

// As given on the command line; "" where nothing was.
struct ClientTlsFlags {
  std::string cacert, client_cert, client_key;
};

// A flag, else VMONCE_CACERT, VMONCE_CLIENT_CERT, VMONCE_CLIENT_KEY. kInvalid, with the repair,
// when a file cannot be read, or a certificate stands without its key.
Result<client::TlsIdentity> ReadClientTls(const ClientTlsFlags& flags, const Environ& environment);

}  // namespace vmonce::app
