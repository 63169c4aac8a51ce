#include "http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "http/chunked_body.h"

namespace vmonce::http {
namespace {

namespace beast_http = boost::beast::http;
using BeastError = boost::beast::error_code;
using BeastView = boost::beast::string_view;

// A body is given this much at once; more only as its bytes arrive, so that announcing a length
// costs nothing here.
constexpr std::size_t kFirstBodyReserve = 16 * 1024;

std::string_view ToStd(BeastView view) { return {view.data(), view.size()}; }

// Puts what Beast reports into a Request. Chunked bodies are not for it: of Beast 1.81 a quoted
// string of an extension reaches beyond its line when the next line has arrived too, and a last
// chunk in pieces fails an assertion.
class BeastParser final : public beast_http::basic_parser<true> {
 public:
  explicit BeastParser(std::size_t max_body_bytes) {
    header_limit(std::numeric_limits<std::uint32_t>::max());
    body_limit(max_body_bytes);
  }

  Request request;
  bool is_http11 = false;

 private:
  void on_request_impl(beast_http::verb, BeastView method, BeastView target, int version,
                       BeastError&) override {
    request.method = ToStd(method);
    request.target = ToStd(target);
    is_http11 = version == 11;
  }
  void on_field_impl(beast_http::field, BeastView name, BeastView value, BeastError&) override {
    request.headers.Add(ToStd(name), ToStd(value));
  }
  void on_header_impl(BeastError&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, BeastError&) override {
    if (length) {
      request.body.reserve(std::min<std::size_t>(*length, kFirstBodyReserve));
    }
  }
  std::size_t on_body_impl(BeastView body, BeastError&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastView, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView, BeastError&) override { return 0; }
  void on_finish_impl(BeastError&) override {}
  void on_response_impl(int, BeastView, int, BeastError&) override {}
};

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The version of a well-formed request line that is just not ours.
bool IsOtherVersion(std::string_view header) {
  const std::string_view line = header.substr(0, header.find("\r\n"));
  const std::size_t space = line.rfind(' ');
  const std::string_view version = space == std::string_view::npos ? "" : line.substr(space + 1);
  return version.size() == 8 && version.starts_with("HTTP/") && IsDigits(version.substr(5, 1)) &&
         version[6] == '.' && IsDigits(version.substr(7));
}

// Where the header ends, found line by line.
class HeaderScanner {
 public:
  enum class Found { kMore, kEnd, kMalformed };

  void Reset() { line_begin_ = scanned_ = lines_ = 0; }

  // `bytes` begins where it began at the last call.
  Found Scan(std::string_view bytes) {
    for (;;) {
      const std::size_t feed = bytes.find('\n', scanned_);
      scanned_ = std::min(feed, bytes.size());
      if (feed == std::string_view::npos) return Found::kMore;
      if (feed == line_begin_ || bytes[feed - 1] != '\r') return Found::kMalformed;
      const bool is_folded = bytes[line_begin_] == ' ' || bytes[line_begin_] == '\t';
      if (is_folded) return Found::kMalformed;
      const bool is_empty = feed - line_begin_ == 1;
      line_begin_ = scanned_ = feed + 1;
      ++lines_;
      if (is_empty) return Found::kEnd;
    }
  }
  std::size_t end() const { return line_begin_; }
  std::size_t lines() const { return lines_; }

 private:
  std::size_t lines_ = 0;
  std::size_t line_begin_ = 0;
  std::size_t scanned_ = 0;
};

}  // namespace

class RequestParser::Impl final {
 public:
  explicit Impl(ParserLimits limits) : limits_(limits) { Reset(); }

  void Reset() {
    beast_.emplace(limits_.max_body_bytes);
    chunks_.emplace(ChunkedLimits{limits_.max_header_bytes, limits_.max_body_bytes});
    scanner_.Reset();
    state_ = State::kHeader;
    has_begun_ = false;
    wants_continue_ = false;
  }

  std::size_t Feed(std::string_view bytes) {
    std::size_t taken = 0;
    if (state_ == State::kHeader) taken = FeedHeader(bytes);
    if (state_ == State::kBody) taken += FeedBody(bytes.substr(taken));
    return taken;
  }

  State state() const { return state_; }
  BeastParser& beast() { return *beast_; }
  const Problem& refusal() const { return refusal_; }
  bool wants_continue() const { return wants_continue_; }

 private:
  std::size_t FeedHeader(std::string_view bytes) {
    std::size_t skipped = 0;
    if (!has_begun_) {
      // RFC 9112 section 2.2: empty lines before a request are skipped.
      while (bytes.starts_with("\r\n")) {
        bytes.remove_prefix(2);
        skipped += 2;
      }
      if (bytes.empty() || bytes == "\r") return skipped;
      has_begun_ = true;
      // Whatever is not a method, a TLS greeting for one, is told at its first byte.
      if (!IsToken(bytes.substr(0, 1))) {
        Refuse(BadRequest("The request line is malformed."));
        return skipped;
      }
    }
    // What lies beyond the limit is not looked at: it may not have arrived, and decides nothing.
    const std::size_t most = limits_.max_header_bytes;
    const HeaderScanner::Found found = scanner_.Scan(bytes.substr(0, most));
    if (found == HeaderScanner::Found::kMalformed) {
      Refuse(BadRequest("A header line is folded or does not end in CR LF."));
      return skipped;
    }
    if (found == HeaderScanner::Found::kMore) {
      if (bytes.size() >= most) Refuse(HeaderTooLarge(most));
      return skipped;
    }
    ParseHeader(bytes.substr(0, scanner_.end()));
    return skipped + scanner_.end();
  }

  void ParseHeader(std::string_view header) {
    BeastError error;
    beast_->request.headers.Reserve(header.size(), scanner_.lines());
    beast_->put({header.data(), header.size()}, error);
    if (error == beast_http::error::body_limit) {
      return Refuse(BodyTooLarge(limits_.max_body_bytes));
    }
    if (error == beast_http::error::bad_version && IsOtherVersion(header)) {
      return Refuse(HttpVersionUnsupported());
    }
    if (error || !beast_->is_header_done()) {
      return Refuse(BadRequest("The request line or a header line is malformed."));
    }
    if (std::optional<Problem> problem = CheckFraming()) return Refuse(std::move(*problem));
    if (std::optional<Problem> problem = CheckHost()) return Refuse(std::move(*problem));
    if (std::optional<Problem> problem = CheckExpectation()) return Refuse(std::move(*problem));
    beast_->eager(true);
    state_ = beast_->is_done() ? State::kComplete : State::kBody;
  }

  // RFC 9112 section 6: how long the body is must have one answer, for every proxy on the way.
  std::optional<Problem> CheckFraming() {
    const HeaderList& headers = beast_->request.headers;
    const std::vector<std::string_view> lengths = headers.All("content-length");
    const std::vector<std::string_view> codings = headers.All("transfer-encoding");
    if (lengths.size() > 1 || (lengths.size() == 1 && !IsDigits(lengths[0]))) {
      return BadRequest("Content-Length must be one number.");
    }
    if (codings.empty()) return std::nullopt;
    if (!lengths.empty())
      return BadRequest("Content-Length and Transfer-Encoding exclude each other.");
    if (!beast_->is_http11) return BadRequest("HTTP/1.0 has no Transfer-Encoding.");
    if (codings.size() > 1 || !EqualsIgnoringCase(codings[0], "chunked")) {
      return TransferCodingUnsupported();
    }
    return std::nullopt;
  }

  // RFC 9112 sections 3.2 and 3.3; also decodes the target.
  std::optional<Problem> CheckHost() {
    Request& request = beast_->request;
    const std::vector<std::string_view> hosts = request.headers.All("host");
    if (hosts.size() > 1) return BadRequest("Two Host headers.");
    if (hosts.empty() && beast_->is_http11) return BadRequest("The Host header is missing.");
    if (!hosts.empty()) request.host = hosts[0];
    if (Status parsed = ParseTarget(request); !parsed) return BadRequest(parsed.error().detail);
    return std::nullopt;
  }

  std::optional<Problem> CheckExpectation() {
    const std::vector<std::string_view> expectations = beast_->request.headers.All("expect");
    // RFC 9110 section 10.1.1: an HTTP/1.0 request's expectation is ignored.
    if (expectations.empty() || !beast_->is_http11) return std::nullopt;
    if (expectations.size() > 1 || !EqualsIgnoringCase(expectations[0], "100-continue")) {
      return ExpectationFailed();
    }
    wants_continue_ = !beast_->is_done();
    return std::nullopt;
  }

  std::size_t FeedBody(std::string_view bytes) {
    if (beast_->chunked()) return FeedChunks(bytes);
    std::size_t taken = 0;
    while (taken < bytes.size() && !beast_->is_done()) {
      const std::string_view rest = bytes.substr(taken);
      BeastError error;
      taken += beast_->put({rest.data(), rest.size()}, error);
      CHECK_MSG(!error, "bytes of a known number have no form");
    }
    if (beast_->is_done()) state_ = State::kComplete;
    return taken;
  }

  std::size_t FeedChunks(std::string_view bytes) {
    const std::size_t taken = chunks_->Feed(bytes, beast_->request.body);
    switch (chunks_->state()) {
      case ChunkedBody::State::kMore: break;
      case ChunkedBody::State::kComplete: state_ = State::kComplete; break;
      case ChunkedBody::State::kRefused: Refuse(chunks_->refusal()); break;
    }
    return taken;
  }

  void Refuse(Problem problem) {
    refusal_ = std::move(problem);
    state_ = State::kRefused;
  }

  const ParserLimits limits_;
  std::optional<BeastParser> beast_;
  std::optional<ChunkedBody> chunks_;
  HeaderScanner scanner_;
  State state_ = State::kHeader;
  // A byte of the request line has been seen.
  bool has_begun_ = false;
  bool wants_continue_ = false;
  Problem refusal_;
};

RequestParser::RequestParser(ParserLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

void RequestParser::Reset() { impl_->Reset(); }

std::size_t RequestParser::Feed(std::string_view bytes) {
  CHECK(state() == State::kHeader || state() == State::kBody);
  return impl_->Feed(bytes);
}

RequestParser::State RequestParser::state() const { return impl_->state(); }
Request& RequestParser::request() { return impl_->beast().request; }
const Problem& RequestParser::refusal() const { return impl_->refusal(); }
bool RequestParser::is_http11() const { return impl_->beast().is_http11; }
bool RequestParser::wants_keep_alive() const { return impl_->beast().keep_alive(); }
bool RequestParser::wants_continue() const { return impl_->wants_continue(); }
std::size_t RequestParser::body_bytes() const { return impl_->beast().request.body.size(); }

}  // namespace vmonce::http
