#include "http/chunked_body.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "http/message.h"

namespace vmonce::http {
namespace {

// As many as 64 bits have; more are leading zeros, which nobody needs, or too much.
constexpr std::size_t kSizeDigits = 16;

Problem MalformedChunk() { return BadRequest("The chunked body is malformed."); }
Problem LongChunkLine() {
  return BadRequest("A chunk's header, its extensions or the trailer are too long.");
}

// RFC 9110 section 5.6.4: what a quoted string holds, escaped or not.
bool IsQuotable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

// Reads a chunk's extensions from their front.
class ExtensionReader {
 public:
  explicit ExtensionReader(std::string_view text) : rest_(text) {}

  // chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] ), and nothing behind.
  bool AreValid() {
    while (!rest_.empty()) {
      if (!TakeMark(';') || !TakeToken()) return false;
      if (TakeMark('=') && !TakeQuoted() && !TakeToken()) return false;
    }
    return true;
  }

 private:
  // With the white space around it; nothing when another byte comes.
  bool TakeMark(char mark) {
    const std::size_t at = rest_.find_first_not_of(" \t");
    if (at == std::string_view::npos || rest_[at] != mark) return false;
    const std::size_t next = rest_.find_first_not_of(" \t", at + 1);
    rest_.remove_prefix(std::min(next, rest_.size()));
    return true;
  }
  bool TakeToken() {
    const auto is_other = [](const char& c) { return !IsToken({&c, 1}); };
    const auto end = std::ranges::find_if(rest_, is_other);
    const auto size = static_cast<std::size_t>(end - rest_.begin());
    rest_.remove_prefix(size);
    return size > 0;
  }
  bool TakeQuoted() {
    if (!rest_.starts_with('"')) return false;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (rest_[i] == '\\') ++i;
      if (i == rest_.size() || !IsQuotable(rest_[i])) return false;
    }
    return false;
  }

  std::string_view rest_;
};

}  // namespace

std::size_t ChunkedBody::Feed(std::string_view bytes, std::string& body) {
  CHECK(state_ == State::kMore);
  std::size_t taken = 0;
  while (state_ == State::kMore) {
    const std::string_view rest = bytes.substr(taken);
    const std::size_t step = next_ == Next::kData ? TakeData(rest, body) : TakeLine(rest);
    if (step == 0) break;
    taken += step;
  }
  return taken;
}

std::size_t ChunkedBody::TakeData(std::string_view bytes, std::string& body) {
  const std::string_view data = bytes.substr(0, data_left_);
  body.append(data);
  data_left_ -= data.size();
  if (data_left_ == 0) next_ = Next::kEndOfData;
  return data.size();
}

// Whether a line is too long is told by its bytes so far, before anything else about it: with the
// rest of it at hand nothing else may come out.
std::size_t ChunkedBody::TakeLine(std::string_view bytes) {
  const std::size_t feed = bytes.find('\n');
  const std::size_t so_far = std::min(feed, bytes.size());
  if (so_far + 1 > limits_.max_line_bytes) {
    Refuse(LongChunkLine());
    return 0;
  }
  if (feed == std::string_view::npos) return 0;
  if (feed == 0 || bytes[feed - 1] != '\r') {
    Refuse(MalformedChunk());
    return 0;
  }
  ReadLine(bytes.substr(0, feed - 1));
  return feed + 1;
}

void ChunkedBody::ReadLine(std::string_view line) {
  if (next_ == Next::kSize) return ReadSize(line);
  if (next_ == Next::kTrailer) return ReadTrailer(line);
  if (!line.empty()) return Refuse(MalformedChunk());
  next_ = Next::kSize;
}

void ChunkedBody::ReadSize(std::string_view line) {
  std::uint64_t size = 0;
  const char* const begin = line.data();
  const auto [end, error] = std::from_chars(begin, begin + line.size(), size, 16);
  const auto digits = static_cast<std::size_t>(end - begin);
  if (error != std::errc() || digits > kSizeDigits) return Refuse(MalformedChunk());
  const std::string_view extensions = line.substr(digits);
  if (!IsWithinExtras(extensions.size())) return Refuse(LongChunkLine());
  if (!ExtensionReader(extensions).AreValid()) return Refuse(MalformedChunk());
  if (size > limits_.max_body_bytes - body_bytes_) {
    return Refuse(BodyTooLarge(limits_.max_body_bytes));
  }
  body_bytes_ += size;
  data_left_ = size;
  next_ = size == 0 ? Next::kTrailer : Next::kData;
}

void ChunkedBody::ReadTrailer(std::string_view line) {
  if (line.empty()) {
    state_ = State::kComplete;
    return;
  }
  if (!IsWithinExtras(line.size())) return Refuse(LongChunkLine());
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos ||
      !IsValidHeader(line.substr(0, colon), line.substr(colon + 1))) {
    return Refuse(MalformedChunk());
  }
}

bool ChunkedBody::IsWithinExtras(std::size_t bytes) {
  extra_bytes_ += bytes;
  return extra_bytes_ <= limits_.max_line_bytes;
}

void ChunkedBody::Refuse(Problem problem) {
  refusal_ = std::move(problem);
  state_ = State::kRefused;
}

}  // namespace vmonce::http
