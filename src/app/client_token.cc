#include "app/client_token.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/config.h"
#include "base/file.h"
#include "client/url.h"
#include "model/auth_limits.h"
#include "model/token.h"

namespace vmonce::app {
namespace {

using std::filesystem::perms;

std::string_view TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return line;
}

// kNotFound when there is no such file.
Result<std::string> ReadSecretFile(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool is_shared =
      !error && std::filesystem::exists(status) &&
      (status.permissions() & (perms::group_all | perms::others_all)) != perms::none;
  if (is_shared) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("others may read the tokens in {}; repair: chmod 600 {}", path, path));
  }
  return ReadWholeFile(path, model::limits::kTokenFileBytes);
}

Result<std::string> CheckToken(std::string_view text, std::string_view place) {
  if (model::IsTokenSecret(text)) return std::string(text);
  return Fail(ErrorCode::kInvalid,
              fmt::format("{} holds no token; one is vmo_ and 64 hexadecimal digits", place));
}

Result<std::string> TokenOfFile(const std::string& path) {
  Result<std::string> text = ReadSecretFile(path);
  if (!text) return Fail(ErrorCode::kInvalid, "token file: " + text.error().detail);
  std::string_view rest = *text;
  return CheckToken(TakeLine(rest), path);
}

Result<std::string> TokenOfList(const std::string& path, const std::string& url) {
  if (path.empty()) return std::string();
  const Result<std::string> text = ReadSecretFile(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::string();
  if (!text) return Fail(ErrorCode::kInvalid, text.error().detail);
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = TakeLine(rest);
    const std::size_t space = line.find(' ');
    if (line.starts_with('#') || space == std::string_view::npos) continue;
    const auto named = client::NormaliseBaseUrl(line.substr(0, space));
    if (!named || *named != url) continue;
    return CheckToken(line.substr(line.find_first_not_of(' ', space)),
                      fmt::format("the line of {} in {}", url, path));
  }
  return std::string();
}

// "http://[::1]:8080" → "::1".
std::string HostOf(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) return std::string(url.substr(1, url.find(']') - 1));
  return std::string(url.substr(0, url.find(':')));
}

bool IsSafeFor(const std::string& url) {
  if (!url.starts_with("http://")) return true;
  const std::string host = HostOf(url);
  return host == "localhost" || IsLoopbackAddress(host);
}

Result<std::string> Find(const std::string& url, const std::string& file,
                         const Environ& environment) {
  if (!file.empty()) return TokenOfFile(file);
  if (const auto token = environment("VMONCE_TOKEN")) return CheckToken(*token, "VMONCE_TOKEN");
  if (const auto named = environment("VMONCE_TOKEN_FILE")) return TokenOfFile(*named);
  return TokenOfList(PersonalTokensPath(environment), url);
}

}  // namespace

Result<std::string> FindToken(const std::string& url, const std::string& file,
                              const Environ& environment) {
  Result<std::string> token = Find(url, file, environment);
  if (!token || token->empty() || IsSafeFor(url)) return token;
  return Fail(
      ErrorCode::kInvalid,
      fmt::format("the token would travel to {} in clear text; use https://, or forward the "
                  "port with ssh -L",
                  url));
}

std::string PersonalTokensPath(const Environ& environment) {
  if (const auto config = environment("XDG_CONFIG_HOME")) return *config + "/vmonce/tokens";
  if (const auto home = environment("HOME")) return *home + "/.config/vmonce/tokens";
  return "";
}

}  // namespace vmonce::app
