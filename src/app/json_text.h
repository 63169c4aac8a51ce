// Reading answers of the API, and writing JSON values as text. A client must not fall over an
// answer of a newer server, so what is not there reads as empty.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vmonce::app {

// `path` is a member's name, or several with dots between ("capacity.cpus"). nullptr when it is not
// there.
const boost::json::value* At(const boost::json::value& value, std::string_view path);

// "" unless it is a string.
std::string TextAt(const boost::json::value& value, std::string_view path);

// `otherwise` unless it is an integer.
std::int64_t NumberAt(const boost::json::value& value, std::string_view path,
                      std::int64_t otherwise);

bool IsTrueAt(const boost::json::value& value, std::string_view path);

// Empty unless it is an array.
std::vector<boost::json::value> ListAt(const boost::json::value& value, std::string_view path);

// For a table's cell: text as it is, "-" for nothing, "a=1,b=2" for an object.
std::string CellAt(const boost::json::value& value, std::string_view path);

// JSON on one line, and indented by two.
std::string CompactJson(const boost::json::value& value);
std::string PrettyJson(const boost::json::value& value);

// The same value as YAML 1.2 in block style. Text is quoted wherever an unquoted scalar could be
// read as anything else, in YAML 1.1 too (no, 1e3, 2026-01-01).
std::string Yaml(const boost::json::value& value);

}  // namespace vmonce::app
