#include "http/message.h"

#include <algorithm>

#include "base/check.h"

namespace vmonce::http {
namespace {

char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool IsControl(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// How many bytes the UTF-8 sequence at `begin` has; 0 when it is malformed, overlong, a surrogate
// or beyond U+10FFFF (the table of RFC 3629 section 4).
std::size_t Utf8Length(std::string_view text, std::size_t begin) {
  const auto byte = [&](std::size_t i) {
    return begin + i < text.size() ? static_cast<unsigned char>(text[begin + i]) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !continues(1)) return 0;
  if (first < 0xe0) return 2;
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first < 0xf0) return continues(2) ? 3 : 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return continues(2) && continues(3) ? 4 : 0;
}

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = Utf8Length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

Status ParseQuery(std::string_view text, std::vector<NamedValue>& query) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    Result<std::string> name = PercentDecode(pair.substr(0, equals), DecodeAs::kQuery);
    if (!name) return Context("query", name.error());
    Result<std::string> value =
        PercentDecode(pair.substr(std::min(equals + 1, pair.size())), DecodeAs::kQuery);
    if (!value) return Context("query", value.error());
    query.push_back({std::move(*name), std::move(*value)});
  }
  return {};
}

// Cuts "http://authority" off the front of `rest`.
Status TakeAuthority(std::string_view& rest, std::string& host) {
  const std::size_t scheme_end = rest.find("://");
  const std::string_view scheme = rest.substr(0, std::min(scheme_end, rest.size()));
  if (!EqualsIgnoringCase(scheme, "http") && !EqualsIgnoringCase(scheme, "https")) {
    return Fail(ErrorCode::kInvalid, "the request target is not a path");
  }
  rest.remove_prefix(scheme_end + 3);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  host = rest.substr(0, end);
  rest.remove_prefix(end);
  if (host.empty() || host.find('@') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "the request target's authority is malformed");
  }
  return {};
}

}  // namespace

void HeaderList::Add(std::string_view name, std::string_view value) {
  const auto begin = static_cast<std::uint32_t>(block_.size());
  block_.append(name).append(value);
  lines_.push_back({begin, static_cast<std::uint32_t>(begin + name.size()),
                    static_cast<std::uint32_t>(block_.size())});
}

void HeaderList::Set(std::string_view name, std::string_view value) {
  for (std::size_t i = lines_.size(); i > 0; --i) {
    if (!EqualsIgnoringCase(this->name(i - 1), name)) continue;
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
  Add(name, value);
}

void HeaderList::Clear() {
  block_.clear();
  lines_.clear();
}

void HeaderList::Reserve(std::size_t bytes, std::size_t lines) {
  block_.reserve(bytes);
  lines_.reserve(lines);
}

std::string_view HeaderList::name(std::size_t i) const {
  const Line& line = lines_[i];
  return std::string_view(block_).substr(line.name_begin, line.value_begin - line.name_begin);
}

std::string_view HeaderList::value(std::size_t i) const {
  const Line& line = lines_[i];
  return std::string_view(block_).substr(line.value_begin, line.value_end - line.value_begin);
}

std::optional<std::string_view> HeaderList::Find(std::string_view name) const {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (IsNamed(lines_[i], name)) return value(i);
  }
  return std::nullopt;
}

std::vector<std::string_view> HeaderList::All(std::string_view name) const {
  std::vector<std::string_view> values;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (IsNamed(lines_[i], name)) values.push_back(value(i));
  }
  return values;
}

std::size_t HeaderList::Count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(lines_, [&](const Line& line) { return IsNamed(line, name); }));
}

// A dozen names are looked for in every request, and most lines have another length.
bool HeaderList::IsNamed(const Line& line, std::string_view name) const {
  return line.value_begin - line.name_begin == name.size() &&
         EqualsIgnoringCase({block_.data() + line.name_begin, name.size()}, name);
}

const std::string& Request::PathParam(std::string_view name) const {
  const auto found = std::ranges::find(path_params, name, &NamedValue::name);
  CHECK_MSG(found != path_params.end(), name);
  return found->value;
}

const std::string* Request::QueryParam(std::string_view name) const {
  const auto found = std::ranges::find(query, name, &NamedValue::name);
  return found == query.end() ? nullptr : &found->value;
}

Response NewResponse(int status, std::string_view content_type, std::string body) {
  Response response;
  response.status = status;
  response.headers.Add("Content-Type", content_type);
  response.body = std::move(body);
  return response;
}

Response JsonResponse(int status, std::string body) {
  return NewResponse(status, "application/json", std::move(body));
}

std::string_view ReasonPhrase(int status) {
  struct Phrase {
    int status;
    std::string_view text;
  };
  static constexpr Phrase kPhrases[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {423, "Locked"},
      {425, "Too Early"},
      {428, "Precondition Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
  };
  const auto* const found = std::ranges::find(kPhrases, status, &Phrase::status);
  return found == std::end(kPhrases) ? "Unknown" : found->text;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return ToLower(x) == ToLower(y);
         });
}

bool IsToken(std::string_view text) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  const auto is_token_char = [](char c) {
    const char lower = ToLower(c);
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') ||
           kMarks.find(c) != std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool IsValidHeader(std::string_view name, std::string_view value) {
  return IsToken(name) && std::ranges::none_of(value, [](char c) {
           return c != '\t' && IsControl(static_cast<unsigned char>(c));
         });
}

std::string MediaType(std::string_view content_type) {
  content_type = content_type.substr(0, std::min(content_type.find(';'), content_type.size()));
  const std::size_t first = std::min(content_type.find_first_not_of(" \t"), content_type.size());
  content_type.remove_prefix(first);
  content_type = content_type.substr(0, content_type.find_last_not_of(" \t") + 1);
  std::string lower(content_type);
  std::ranges::transform(lower, lower.begin(), ToLower);
  return lower;
}

Result<std::string> PercentDecode(std::string_view text, DecodeAs as) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return Fail(ErrorCode::kInvalid, "a percent escape is malformed");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && as == DecodeAs::kQuery) {
      c = ' ';
    }
    if (IsControl(static_cast<unsigned char>(c))) {
      return Fail(ErrorCode::kInvalid, "a control byte is not allowed");
    }
    decoded.push_back(c);
  }
  if (!IsUtf8(decoded)) return Fail(ErrorCode::kInvalid, "the decoded text is not UTF-8");
  return decoded;
}

Status ParseTarget(Request& request) {
  std::string_view rest = request.target;
  const bool is_plain =
      std::ranges::all_of(rest, [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (!is_plain) {
    return Fail(ErrorCode::kInvalid, "the request target has a byte that must be escaped");
  }
  request.query.clear();
  if (rest == "*") {
    request.path = rest;
    return {};
  }
  if (!rest.starts_with('/')) {
    if (Status taken = TakeAuthority(rest, request.host); !taken) return taken;
  }
  const std::size_t path_end = std::min(rest.find('?'), rest.size());
  request.path = path_end == 0 ? "/" : rest.substr(0, path_end);
  if (Result<std::string> path = PercentDecode(request.path, DecodeAs::kPath); !path) {
    return Context("path", path.error());
  }
  return ParseQuery(rest.substr(std::min(path_end + 1, rest.size())), request.query);
}

}  // namespace vmonce::http
