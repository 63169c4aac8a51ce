#include "client/url.h"

#include <fmt/format.h>

namespace vmonce::client {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Result<std::string> NormaliseBaseUrl(std::string_view url) {
  const bool is_http = url.starts_with("http://");
  if (!is_http && !url.starts_with("https://")) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("\"{}\" is no URL of a server; write http://HOST:PORT or "
                            "https://HOST:PORT",
                            url));
  }
  const std::size_t scheme = is_http ? 7 : 8;
  while (url.size() > scheme && url.ends_with('/')) url.remove_suffix(1);
  const std::string_view rest = url.substr(scheme);
  if (rest.empty() || rest.starts_with('/')) {
    return Fail(ErrorCode::kInvalid, "the URL names no host; write http://HOST:PORT");
  }
  for (const char c : rest) {
    if (c == '?' || c == '#' || c == '@' || static_cast<unsigned char>(c) <= ' ') {
      return Fail(ErrorCode::kInvalid,
                  "the URL of a server has no query, fragment, user or space; write "
                  "http://HOST:PORT");
    }
  }
  return std::string(url);
}

std::string JoinUrl(std::string_view base, std::string_view path,
                    const std::vector<std::pair<std::string, std::string>>& query) {
  std::string url(base);
  url += path;
  char separator = '?';
  for (const auto& [name, value] : query) {
    url += separator;
    url += PercentEncode(name) + "=" + PercentEncode(value);
    separator = '&';
  }
  return url;
}

}  // namespace vmonce::client
