#include "base/json.h"

#include <double-conversion/string-to-double.h>
#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace vmonce {
namespace {

namespace json = boost::json;
using json::error_code;

constexpr std::int64_t kMaxWhole = std::int64_t{1} << 53;

// The nearest double. Boost 1.81's own conversion is off by a unit in the last place for some
// texts, and then two readers of one body would disagree.
double NearestDouble(std::string_view text) {
  const double_conversion::StringToDoubleConverter converter(
      double_conversion::StringToDoubleConverter::NO_FLAGS, 0.0,
      std::numeric_limits<double>::quiet_NaN(), nullptr, nullptr);
  int used = 0;
  return converter.StringToDouble(text.data(), static_cast<int>(text.size()), &used);
}

// Builds the value from the parser's events and refuses what the grammar allows and we do not.
// Names, strings and numbers may come in parts: what came before the last part is kept in text_.
class StrictHandler {
 public:
  // The parser demands these; the caller bounds the whole text.
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();

  // Why this handler refused; empty when it did not.
  const std::string& cause() const { return cause_; }
  json::value Release() { return std::move(root_); }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }

  bool on_object_begin(error_code&) { return Open(json::object()); }
  bool on_array_begin(error_code&) { return Open(json::array()); }
  bool on_object_end(std::size_t, error_code& ec) { return Close(ec); }
  bool on_array_end(std::size_t, error_code& ec) { return Close(ec); }

  bool on_key_part(std::string_view part, std::size_t, error_code&) { return Keep(part); }
  bool on_key(std::string_view part, std::size_t, error_code& ec) {
    std::string name = TakeText(part);
    if (HasNul(name)) return Refuse("a member name holds U+0000", ec);
    Container& open = open_.back();
    if (open.value.get_object().contains(name)) {
      return Refuse(fmt::format("the member name {} stands twice in one object",
                                json::serialize(json::string(name))),
                    ec);
    }
    open.name = std::move(name);
    return true;
  }

  bool on_string_part(std::string_view part, std::size_t, error_code&) { return Keep(part); }
  bool on_string(std::string_view part, std::size_t, error_code& ec) {
    const std::string text = TakeText(part);
    if (HasNul(text)) return Refuse("a string holds U+0000", ec);
    return Add(json::string(text), ec);
  }

  bool on_number_part(std::string_view part, error_code&) { return Keep(part); }
  bool on_int64(std::int64_t number, std::string_view, error_code& ec) {
    text_.clear();
    if (number > kMaxWhole || number < -kMaxWhole) return RefuseBeyond(ec);
    return Add(number, ec);
  }
  bool on_uint64(std::uint64_t, std::string_view, error_code& ec) {
    // Only what no int64 can hold comes as this kind.
    return RefuseBeyond(ec);
  }
  bool on_double(double, std::string_view part, error_code& ec) {
    const std::string text = TakeText(part);
    const double number = NearestDouble(text);
    if (!std::isfinite(number)) return Refuse("a number is too large for a double", ec);
    if (std::abs(number) >= static_cast<double>(kMaxWhole)) return RefuseBeyond(ec);
    if (std::trunc(number) == number) return Add(static_cast<std::int64_t>(number), ec);
    return Add(number, ec);
  }

  bool on_bool(bool value, error_code& ec) { return Add(value, ec); }
  bool on_null(error_code& ec) { return Add(nullptr, ec); }
  bool on_comment_part(std::string_view, error_code&) { return true; }
  bool on_comment(std::string_view, error_code&) { return true; }

 private:
  // An object or array whose end has not come yet, and in an object the name whose value comes
  // next.
  struct Container {
    json::value value;
    std::string name;
  };

  static bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

  bool Refuse(std::string cause, error_code& ec) {
    cause_ = std::move(cause);
    ec = json::error::syntax;
    return false;
  }
  bool RefuseBeyond(error_code& ec) { return Refuse("a whole number is beyond 2^53", ec); }

  bool Keep(std::string_view part) {
    text_ += part;
    return true;
  }
  std::string TakeText(std::string_view last_part) {
    text_ += last_part;
    return std::exchange(text_, {});
  }

  bool Open(json::value value) {
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool Close(error_code& ec) {
    json::value closed = std::move(open_.back().value);
    open_.pop_back();
    return Add(std::move(closed), ec);
  }
  bool Add(json::value value, error_code&) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Container& open = open_.back(); open.value.is_array()) {
      open.value.get_array().push_back(std::move(value));
    } else {
      open.value.get_object().emplace(open.name, std::move(value));
    }
    return true;
  }

  std::string text_;
  std::string cause_;
  std::vector<Container> open_;
  json::value root_;
};

using StrictParser = json::basic_parser<StrictHandler>;

json::parse_options Options(const JsonLimits& limits) {
  json::parse_options options;
  options.max_depth = limits.max_depth;
  return options;
}

// The start of the first piece of `piece` bytes, from `from` on, in which the parser notices an
// error; `text`'s size when it does in none.
std::size_t FailingPiece(StrictParser& parser, std::string_view text, std::size_t from,
                         std::size_t piece) {
  for (std::size_t at = from; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    error_code ec;
    const std::size_t used = parser.write_some(true, part.data(), part.size(), ec);
    if (ec) return at;
    if (used < part.size()) return at + used;
  }
  return text.size();
}

// The parser does not tell where it failed, so a text that did is read again: in pieces, then the
// failing piece byte by byte. Linear in the text.
std::size_t ErrorOffset(std::string_view text, const JsonLimits& limits) {
  constexpr std::size_t kPiece = 1024;
  StrictParser coarse(Options(limits));
  const std::size_t piece = FailingPiece(coarse, text, 0, kPiece) / kPiece * kPiece;
  StrictParser fine(Options(limits));
  error_code ec;
  if (piece > 0) fine.write_some(true, text.data(), piece, ec);
  return FailingPiece(fine, text, piece, 1);
}

}  // namespace

Result<json::value> ParseStrictJson(std::string_view text, const JsonLimits& limits) {
  StrictParser parser(Options(limits));
  error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used == text.size()) return parser.handler().Release();

  const std::string cause = !ec                                 ? "more follows after the value"
                            : !parser.handler().cause().empty() ? parser.handler().cause()
                            : ec == json::error::too_deep
                                ? fmt::format("nested deeper than {} levels", limits.max_depth)
                                : ec.message();
  const std::size_t offset = ec ? ErrorOffset(text, limits) : used;
  return Fail(ErrorCode::kInvalid,
              fmt::format("not acceptable JSON at byte {}: {}", offset, cause));
}

}  // namespace vmonce
