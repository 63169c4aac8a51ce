#include "app/config_document.h"

#include <utility>

// Parse errors are values, and nothing but this file is compiled with the library.
//
// toml++ 3.3 asserts of a table's name what it has not looked at yet, so that "[.a]" would end the
// program (or, with NDEBUG, be undefined); the line behind the assertion reports the mistake.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_HEADER_ONLY 1
// Its class of non-ASCII blanks ends in "unreachable" for U+00A1 to U+0499, which may stand
// anywhere; either of the cases that a compiler may take for it then answers what is meant: no
// blank.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((no_sanitize("unreachable"))), apply_to = function)
#endif
#include <toml++/toml.h>
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang diagnostic pop
#endif

namespace vmonce::app {
namespace {

ConfigOrigin OriginOf(const toml::source_region& region, const std::string& source) {
  return {source, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

ConfigNode Convert(const toml::node& node, const std::string& source) {
  ConfigNode converted{OriginOf(node.source(), source), ConfigOther{"a value of another type"}};
  if (const toml::table* table = node.as_table()) {
    ConfigTable entries;
    for (const auto& [key, value] : *table) {
      entries.push_back(
          {std::string(key.str()), OriginOf(key.source(), source), Convert(value, source)});
    }
    converted.value = std::move(entries);
  } else if (const toml::array* array = node.as_array()) {
    ConfigArray items;
    for (const toml::node& item : *array) items.push_back(Convert(item, source));
    converted.value = std::move(items);
  } else if (const auto* text = node.as_string()) {
    converted.value = text->get();
  } else if (const auto* integer = node.as_integer()) {
    converted.value = integer->get();
  } else if (const auto* boolean = node.as_boolean()) {
    converted.value = boolean->get();
  } else if (node.is_floating_point()) {
    converted.value = ConfigOther{"a number with a fraction"};
  } else {
    converted.value = ConfigOther{"a date or time"};
  }
  return converted;
}

struct KindNames {
  std::string_view operator()(const ConfigTable&) const { return "a table"; }
  std::string_view operator()(const ConfigArray&) const { return "a list"; }
  std::string_view operator()(const std::string&) const { return "a string"; }
  std::string_view operator()(std::int64_t) const { return "an integer"; }
  std::string_view operator()(bool) const { return "a boolean"; }
  std::string_view operator()(const ConfigWord&) const { return "a word"; }
  std::string_view operator()(const ConfigOther& other) const { return other.kind; }
};

}  // namespace

std::string_view KindOf(const ConfigNode& node) { return std::visit(KindNames{}, node.value); }

const std::string* TextOf(const ConfigNode& node) {
  if (const auto* text = std::get_if<std::string>(&node.value)) return text;
  if (const auto* word = std::get_if<ConfigWord>(&node.value)) return &word->text;
  return nullptr;
}

const ConfigEntry* FindEntry(const ConfigNode& table, std::string_view key) {
  const auto* entries = std::get_if<ConfigTable>(&table.value);
  if (entries == nullptr) return nullptr;
  for (const ConfigEntry& entry : *entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

ConfigEntry* FindEntry(ConfigNode& table, std::string_view key) {
  return const_cast<ConfigEntry*>(FindEntry(std::as_const(table), key));
}

std::expected<ConfigNode, ConfigSyntaxError> ParseConfigDocument(std::string_view toml,
                                                                 const std::string& source) {
  const toml::parse_result parsed = toml::parse(toml);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return std::unexpected(
        ConfigSyntaxError{OriginOf(error.source(), source), std::string(error.description())});
  }
  return Convert(parsed.table(), source);
}

}  // namespace vmonce::app
