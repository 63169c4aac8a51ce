#include "base/result.h"

#include <fmt/format.h>

namespace vmonce {

std::string_view ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid: return "invalid";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kRefused: return "refused";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kUnknown: return "unknown";
    case ErrorCode::kFenced: return "fenced";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

std::unexpected<Error> Context(std::string_view where, Error error) {
  error.detail = fmt::format("{}: {}", where, error.detail);
  return std::unexpected(std::move(error));
}

}  // namespace vmonce
