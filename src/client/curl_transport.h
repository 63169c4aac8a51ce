// HTTP/1.1 by libcurl.
#pragma once

#include <memory>
#include <string>

#include "client/transport.h"

namespace vmonce::client {

struct CurlOptions {
  std::string user_agent;
  Milliseconds connect_timeout{};
  std::size_t max_answer_bytes = 0;
  // TLS gets its certificates here; until then a https:// URL is kInvalid.
};

// Connections are kept between calls. Proxies of the environment are not used: a request goes where
// its URL says, and nowhere else. To be made before other threads start (libcurl's global
// initialisation).
std::unique_ptr<Transport> NewCurlTransport(CurlOptions options);

}  // namespace vmonce::client
