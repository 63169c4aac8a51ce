// Errors are values. Result<T> is what every fallible call returns; Error says what is known about
// the world after it.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace vmonce {

// Closed on purpose: code branches on these and never on text. The line that matters most runs
// between kUnavailable (nothing happened, try later) and kUnknown (it may have happened: look
// before doing anything else).
enum class ErrorCode {
  kInvalid,   // The request or the input is malformed; the same input never succeeds.
  kNotFound,  // Positively absent: a typed answer, never a guess from a timeout, a text or an empty
              // list.
  kConflict,  // Something that is not ours, or another state, stands in the way. Nothing happened.
  kRefused,   // Nothing happened, and the same request never succeeds there.
  kUnavailable,  // Nothing happened; the same request may succeed later.
  kUnknown,      // It may have happened. Look first.
  kFenced,       // A newer fence exists, or the lease deadline has passed. Nothing happened; drop
                 // everything.
  kInternal,     // A fault of this program or its storage that needs a person. Nothing is claimed
                 // about effects.
};

std::string_view ToString(ErrorCode code);

struct Error {
  ErrorCode code;
  // For people: what happened. Context is added in front when an error crosses a folder (see
  // Context()).
  std::string detail;

  bool operator==(const Error&) const = default;
};

// A class and not an alias, so that the compiler tells when an answer is dropped.
template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;

  // With another Result, a value, or an unexpected. Written here since the base's operators,
  // offered a derived class, are ambiguous in one compiler and depend on themselves in the other.
  template <typename Other>
  friend bool operator==(const Result& a, const Other& b) {
    const std::expected<T, Error>& base = a;
    if constexpr (std::is_same_v<Other, Result>) {
      const std::expected<T, Error>& other = b;
      return base == other;
    } else {
      return base == b;
    }
  }
};

using Status = Result<void>;

inline std::unexpected<Error> Fail(ErrorCode code, std::string detail) {
  return std::unexpected(Error{code, std::move(detail)});
}

// Puts `where` in front of the detail and keeps the code.
std::unexpected<Error> Context(std::string_view where, Error error);

}  // namespace vmonce
