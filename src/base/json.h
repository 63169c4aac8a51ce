// Strict JSON in and canonical JSON out. Two parsers must never read one body differently, so what
// RFC 8259 leaves open is refused here; the canonical form is RFC 8785 (JCS).
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vmonce {

struct JsonLimits {
  std::size_t max_depth = 32;
};

// kInvalid, with position (the byte where the trouble was noticed) and cause in the detail, for:
// malformed text, bytes after the value, invalid UTF-8, an unpaired surrogate, a member name twice
// in one object, U+0000 in a string or name, an integer beyond 2^53, a number that is not finite,
// or nesting deeper than the limit.
//
// A number counts by its value, not its spelling: 1, 1.0 and 1e0 give the same std::int64_t, and -0
// gives 0. Kinds are therefore std::int64_t for whole numbers, double for all others, never
// std::uint64_t. A number spelled with fraction or exponent is refused from 2^53 itself on, where
// its own spelling may have been rounded. Other numbers are read to the nearest double, exactly as
// IEEE 754 says.
Result<boost::json::value> ParseStrictJson(std::string_view text, const JsonLimits& limits = {});

// RFC 8785: members sorted by UTF-16 code units, ECMAScript number form (1.0 is 1, -0 is 0),
// minimal escapes. Precondition: `value` came from ParseStrictJson or holds only what it accepts.
std::string CanonicalJson(const boost::json::value& value);

// RFC 6901 pointers to the places where two values differ, in document order, at most `most` of
// them. A member that only one side has is named itself. Equal numbers of different kinds are
// equal.
std::vector<std::string> DifferingPointers(const boost::json::value& a, const boost::json::value& b,
                                           std::size_t most);

// RFC 6901: `pointer` with one reference token more, escaped.
std::string JsonPointer(std::string_view pointer, std::string_view token);

}  // namespace vmonce
