// The door to HTTP: one request out, one answer or one error back. Tests hand in a fake.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace vmonce::client {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET", "POST", ...
  std::string url;     // Absolute.
  Headers headers;
  std::string body;
  Milliseconds deadline{};  // For the whole exchange, from the call on; positive.
};

struct HttpResponse {
  int status = 0;
  Headers headers;  // Names in lower case.
  std::string body;

  // The first header line of that name, which is given in lower case.
  std::optional<std::string_view> Header(std::string_view name) const;
};

// Used by one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  // One exchange, tried once, redirects not followed. kInvalid: the URL or the answer is nothing
  // this transport can handle. kUnavailable: nothing was sent. kRefused: client and server do not
  // accept each other's certificates, and nothing was done. kUnknown: the request may have arrived;
  // so it is also after `stop`, which ends the call at once.
  virtual Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) = 0;
};

}  // namespace vmonce::client
