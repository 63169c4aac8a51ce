#include "app/json_text.h"

#include <fmt/format.h>

namespace vmonce::app {

using boost::json::array;
using boost::json::object;
using boost::json::value;

const value* At(const value& start, std::string_view path) {
  const value* here = &start;
  while (!path.empty()) {
    const auto dot = path.find('.');
    const auto name = path.substr(0, dot);
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    const object* members = here->if_object();
    here = members == nullptr ? nullptr : members->if_contains(name);
    if (here == nullptr) return nullptr;
  }
  return here;
}

std::string TextAt(const value& start, std::string_view path) {
  const value* found = At(start, path);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::int64_t NumberAt(const value& start, std::string_view path, std::int64_t otherwise) {
  const value* found = At(start, path);
  return found != nullptr && found->is_int64() ? found->get_int64() : otherwise;
}

bool IsTrueAt(const value& start, std::string_view path) {
  const value* found = At(start, path);
  return found != nullptr && found->is_bool() && found->get_bool();
}

std::vector<value> ListAt(const value& start, std::string_view path) {
  const value* found = At(start, path);
  if (found == nullptr || !found->is_array()) return {};
  return {found->get_array().begin(), found->get_array().end()};
}

std::string CompactJson(const value& any) { return boost::json::serialize(any); }

namespace {

std::string Cell(const value& any) {
  if (any.is_null()) return "-";
  if (any.is_string()) return any.get_string().empty() ? "-" : std::string(any.get_string());
  std::string out;
  if (const object* members = any.if_object()) {
    for (const auto& member : *members) {
      out += fmt::format("{}{}={}", out.empty() ? "" : ",", std::string_view(member.key()),
                         Cell(member.value()));
    }
    return out.empty() ? "-" : out;
  }
  if (const array* list = any.if_array()) {
    for (const value& element : *list) out += (out.empty() ? "" : ",") + Cell(element);
    return out.empty() ? "-" : out;
  }
  return CompactJson(any);
}

bool IsEmptyOrScalar(const value& any) {
  if (const object* members = any.if_object()) return members->empty();
  if (const array* list = any.if_array()) return list->empty();
  return true;
}

void AppendPretty(std::string& out, const value& any, std::size_t depth) {
  if (IsEmptyOrScalar(any)) {
    out += CompactJson(any);
    return;
  }
  const std::string indent(2 * (depth + 1), ' ');
  bool is_first = true;
  const auto begin_line = [&] {
    out += is_first ? "\n" : ",\n";
    out += indent;
    is_first = false;
  };
  out += any.is_object() ? '{' : '[';
  if (const object* members = any.if_object()) {
    for (const auto& member : *members) {
      begin_line();
      out += CompactJson(value(member.key())) + ": ";
      AppendPretty(out, member.value(), depth + 1);
    }
  } else {
    for (const value& element : any.get_array()) {
      begin_line();
      AppendPretty(out, element, depth + 1);
    }
  }
  out += "\n" + std::string(2 * depth, ' ') + (any.is_object() ? '}' : ']');
}

// Plain only when it begins with a letter, has none but harmless characters and is no word of
// YAML's own; a letter first excludes every form of number and date.
bool IsPlain(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !is_letter(text.front())) return false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_letter(c) && !is_digit && c != '_' && c != '-' && c != '.' && c != '/') return false;
  }
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  constexpr std::string_view kWords[] = {"y",   "n",    "yes",   "no",  "on",
                                         "off", "true", "false", "null"};
  return std::ranges::find(kWords, lower) == std::end(kWords);
}

std::string YamlScalar(const value& any) {
  const auto* text = any.if_string();
  if (text != nullptr && IsPlain(*text)) return std::string(*text);
  // A JSON text is a YAML double-quoted scalar, or an empty flow collection.
  return CompactJson(any);
}

void AppendYaml(std::string& out, const value& any, std::size_t depth);

// After "key:" or "-": on the same line when it fits there.
void AppendYamlValue(std::string& out, const value& any, std::size_t depth) {
  if (IsEmptyOrScalar(any)) {
    out += " " + YamlScalar(any) + "\n";
    return;
  }
  out += "\n";
  AppendYaml(out, any, depth);
}

void AppendYaml(std::string& out, const value& any, std::size_t depth) {
  const std::string indent(2 * depth, ' ');
  if (const object* members = any.if_object()) {
    for (const auto& member : *members) {
      out += indent + YamlScalar(value(member.key())) + ":";
      AppendYamlValue(out, member.value(), depth + 1);
    }
    return;
  }
  for (const value& element : any.get_array()) {
    out += indent + "-";
    AppendYamlValue(out, element, depth + 1);
  }
}

}  // namespace

std::string CellAt(const value& start, std::string_view path) {
  const value* found = At(start, path);
  return found == nullptr ? "-" : Cell(*found);
}

std::string PrettyJson(const value& any) {
  std::string out;
  AppendPretty(out, any, 0);
  return out;
}

std::string Yaml(const value& any) {
  if (IsEmptyOrScalar(any)) return YamlScalar(any) + "\n";
  std::string out;
  AppendYaml(out, any, 0);
  return out;
}

}  // namespace vmonce::app
