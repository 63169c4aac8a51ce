#include "hypervisor/base_image.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <cerrno>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

bool NamesDataFile(const boost::json::object& info) {
  const auto* specific = info.if_contains("format-specific");
  if (specific == nullptr || !specific->is_object()) return false;
  const auto* data = specific->get_object().if_contains("data");
  return data != nullptr && data->is_object() && data->get_object().contains("data-file");
}

Status CheckFile(const std::string& path, const std::string& format) {
  if (!path.starts_with('/') || (format != "qcow2" && format != "raw")) {
    return Fail(
        ErrorCode::kRefused,
        fmt::format("image {}: an absolute path and the format qcow2 or raw are needed", path));
  }
  struct stat file{};
  if (stat(path.c_str(), &file) == 0) {
    if (S_ISREG(file.st_mode) || S_ISBLK(file.st_mode)) return {};
    return Fail(ErrorCode::kRefused, fmt::format("image {} is not a file", path));
  }
  const Error error = ErrnoError(errno, fmt::format("image {}", path));
  const bool is_absent = error.code == ErrorCode::kNotFound;
  return Fail(is_absent ? ErrorCode::kNotFound : ErrorCode::kUnavailable, error.detail);
}

}  // namespace

Result<std::int64_t> InspectBaseImage(const std::string& path, const std::string& format) {
  if (auto file = CheckFile(path, format); !file) return std::unexpected(file.error());
  auto ran = RunProcess({.argv = {"qemu-img", "info", "--output=json", "-U", "-f", format, path},
                         .timeout = model::limits::kToolDeadline,
                         .max_output_bytes = model::limits::kToolOutputBytes});
  if (!ran) {
    const bool is_missing = ran.error().code == ErrorCode::kNotFound;
    return Fail(is_missing ? ErrorCode::kRefused : ErrorCode::kUnavailable,
                is_missing ? "qemu-img is not installed (Debian: apt install qemu-utils)"
                           : ran.error().detail);
  }
  if (!ran->exit_code) return Fail(ErrorCode::kUnavailable, "qemu-img " + ran->Describe());
  if (*ran->exit_code != 0) {
    return Fail(ErrorCode::kRefused,
                fmt::format("image {} is not {}: qemu-img {}", path, format, ran->Describe()));
  }
  return JudgeBaseImage(path, ran->stdout_text);
}

Result<std::int64_t> JudgeBaseImage(const std::string& path, std::string_view info) {
  const auto value = ParseStrictJson(info);
  if (!value || !value->is_object()) {
    return Fail(ErrorCode::kUnavailable, fmt::format("qemu-img said nothing clear of {}", path));
  }
  const boost::json::object& object = value->get_object();
  if (object.contains("backing-filename") || NamesDataFile(object)) {
    return Fail(ErrorCode::kRefused,
                fmt::format("image {} names another file (a backing or data file); flatten it with "
                            "qemu-img convert",
                            path));
  }
  const auto* size = object.if_contains("virtual-size");
  if (size == nullptr || !size->is_int64() || size->get_int64() <= 0) {
    return Fail(ErrorCode::kRefused, fmt::format("image {} has no size", path));
  }
  return size->get_int64();
}

}  // namespace vmonce::hypervisor
