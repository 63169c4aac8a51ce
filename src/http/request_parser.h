// Bytes to requests, one after another. What RFC 9112 lets a server tolerate and what request
// smuggling is made of is refused: obsolete folding, bare line feeds, two lengths, both lengths and
// codings, unknown codings, two hosts.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "http/message.h"
#include "http/problem.h"

namespace vmonce::http {

struct ParserLimits {
  std::size_t max_header_bytes;
  // After removing the chunked coding.
  std::size_t max_body_bytes;
};

// Holds no more of a body than the limit. Trailers are read and dropped. Not thread-safe.
class RequestParser final {
 public:
  enum class State {
    kHeader,    // The header is not complete.
    kBody,      // The header is complete; the body is not.
    kComplete,  // request() is whole.
    kRefused,   // refusal() says why; where the next request would begin is unknown.
  };

  explicit RequestParser(ParserLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Starts over for the next request.
  void Reset();

  // Takes bytes from the front of `bytes` and returns how many; the rest is to come again, at the
  // front, with more bytes behind it. Never needs more than `max_header_bytes` bytes at once.
  // Precondition: the state is kHeader or kBody.
  std::size_t Feed(std::string_view bytes);

  State state() const;
  // From kBody on all but the body; from kComplete on whole, and may be moved out. Everything from
  // the header is decoded and checked; remote_address, path_params and request_id are not this
  // class's.
  Request& request();
  // Precondition: kRefused.
  const Problem& refusal() const;

  // From kBody on.
  bool is_http11() const;
  bool wants_keep_alive() const;
  // The client waits for 100 before it sends the body.
  bool wants_continue() const;
  std::size_t body_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vmonce::http
