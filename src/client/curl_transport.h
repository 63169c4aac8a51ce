// HTTP/1.1 by libcurl.
#pragma once

#include <memory>
#include <string>

#include "client/transport.h"

namespace vmonce::client {

// PEM files for https://, read at every connection.
struct TlsIdentity {
  std::string ca_file;      // Whom to believe; "": whom the system believes.
  std::string certificate;  // The client's own, with `key`; "": none is shown.
  std::string key;
};

struct CurlOptions {
  std::string user_agent;
  Milliseconds connect_timeout{};
  std::size_t max_answer_bytes = 0;
  TlsIdentity tls{};
};

// TLS 1.2 and 1.3. A server is believed when a certificate authority vouches for it and its name or
// address is the URL's. Where the two sides do not accept each other's certificates the error is
// kRefused: nothing was sent, or the server has read nothing of it.
//
// Connections are kept between calls. Proxies of the environment are not used: a request goes where
// its URL says, and nowhere else. To be made before other threads start (libcurl's global
// initialisation).
std::unique_ptr<Transport> NewCurlTransport(CurlOptions options);

}  // namespace vmonce::client
