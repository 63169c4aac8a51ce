// The chunked coding of RFC 9112 section 7.1, taken off a body. A chunk's line, or a trailer's, is
// what lies before its CR LF, and only then is it read: no quoted string reaches into the next one,
// and the outcome does not depend on how the bytes arrive.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/problem.h"

namespace vmonce::http {

struct ChunkedLimits {
  // Of one chunk's line; and of all extensions and trailers together, for which section 7.1.1 asks
  // for a bound: each byte of a body could bring its own.
  std::size_t max_line_bytes;
  std::size_t max_body_bytes;
};

// Extensions and trailers are checked and dropped. Refused are, besides what is malformed, lines
// that end in a bare line feed, folded trailers, and sizes of more than 16 digits. Not thread-safe.
class ChunkedBody final {
 public:
  enum class State {
    kMore,
    kComplete,
    kRefused,  // refusal() says why.
  };

  explicit ChunkedBody(ChunkedLimits limits) : limits_(limits) {}

  // Takes bytes from the front of `bytes`, appends what they carry to `body`, and returns how many
  // it took; the rest is to come again, at the front, with more bytes behind it. What is left in
  // kMore is shorter than `max_line_bytes`. Precondition: the state is kMore.
  std::size_t Feed(std::string_view bytes, std::string& body);

  State state() const { return state_; }
  // Precondition: kRefused.
  const Problem& refusal() const { return refusal_; }

 private:
  enum class Next { kSize, kData, kEndOfData, kTrailer };

  std::size_t TakeData(std::string_view bytes, std::string& body);
  std::size_t TakeLine(std::string_view bytes);
  void ReadLine(std::string_view line);
  void ReadSize(std::string_view line);
  void ReadTrailer(std::string_view line);
  bool IsWithinExtras(std::size_t bytes);
  void Refuse(Problem problem);

  const ChunkedLimits limits_;
  State state_ = State::kMore;
  Next next_ = Next::kSize;
  std::size_t data_left_ = 0;    // Of the chunk that is being read.
  std::size_t body_bytes_ = 0;   // Of all chunks announced so far.
  std::size_t extra_bytes_ = 0;  // Extensions and trailers so far.
  Problem refusal_;
};

}  // namespace vmonce::http
