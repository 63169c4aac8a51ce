#include "app/config_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "app/duration.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

// Levenshtein's distance; both are short.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::optional<std::int64_t> IntegerOf(const ConfigNode& node) {
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) return *integer;
  const auto* word = std::get_if<ConfigWord>(&node.value);
  if (word == nullptr) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = word->text.data() + word->text.size();
  const auto [rest, error] = std::from_chars(word->text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

std::optional<bool> BooleanOf(const ConfigNode& node) {
  if (const auto* boolean = std::get_if<bool>(&node.value)) return *boolean;
  const auto* word = std::get_if<ConfigWord>(&node.value);
  if (word != nullptr && word->text == "true") return true;
  if (word != nullptr && word->text == "false") return false;
  return std::nullopt;
}

// Values go into XML, URLs and command lines, where no control character belongs.
bool HasControls(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

}  // namespace

void ConfigFindings::Add(const ConfigOrigin& at, std::string text, std::string fix) {
  const auto place = [](const ConfigMistake& mistake) {
    return std::tuple(mistake.line, mistake.column);
  };
  const auto after = std::ranges::upper_bound(mistakes_, std::tuple(at.line, at.column), {}, place);
  mistakes_.insert(after, {at.source, at.line, at.column, std::move(text), std::move(fix)});
}

void ConfigFindings::Explain(std::string name, std::string value, const ConfigOrigin& at) {
  std::string origin = at.source.empty() ? "default" : at.source;
  if (at.IsFile()) origin = fmt::format("{}:{}", at.source, at.line);
  values_.push_back({std::move(name), std::move(value), std::move(origin)});
}

std::vector<ConfigMistake> ConfigFindings::TakeMistakes() {
  if (mistakes_.size() > limits::kConfigMistakes) {
    mistakes_.erase(mistakes_.begin() + limits::kConfigMistakes, mistakes_.end());
  }
  return std::move(mistakes_);
}

std::string_view Nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view nearest;
  // A third of its letters may be wrong, and of short words one.
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = Distance(word, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

bool IsPlainPath(std::string_view path) {
  return path.starts_with('/') && path.find("/..") == std::string_view::npos &&
         std::ranges::all_of(path, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '/' || c == '.' || c == '-' || c == '_';
         });
}

ConfigTableReader::ConfigTableReader(const ConfigNode* table, TableName name,
                                     const std::string& directory, ConfigFindings& findings)
    : table_(table), name_(std::move(name)), directory_(directory), findings_(findings) {}

bool ConfigTableReader::Has(std::string_view key) const {
  return table_ != nullptr && FindEntry(*table_, key) != nullptr;
}

bool ConfigTableReader::Text(std::string_view key, std::string& value) {
  bool was_read = false;
  if (const ConfigNode* node = Take(key)) {
    const std::string* text = TextOf(*node);
    if (text == nullptr) {
      WrongType(*node, key, "a string", "put it in quotes");
    } else if (HasControls(*text)) {
      Mistake(key, fmt::format("{} holds a control character", InTable(key)), "remove it");
    } else {
      value = *text;
      was_read = true;
    }
  }
  Explain(key, value);
  return was_read;
}

void ConfigTableReader::Choice(std::string_view key, std::span<const std::string_view> words,
                               std::string& value) {
  std::string chosen = value;
  if (!Text(key, chosen)) return;
  if (std::ranges::find(words, chosen) != words.end()) {
    value = std::move(chosen);
    return;
  }
  const std::string_view nearest = Nearest(chosen, words);
  Mistake(key, fmt::format("{} is \"{}\"", InTable(key), chosen),
          nearest.empty() ? fmt::format("choose one of \"{}\"", fmt::join(words, "\", \""))
                          : fmt::format("did you mean \"{}\"?", nearest));
}

void ConfigTableReader::Path(std::string_view key, std::string& value) {
  if (const ConfigNode* node = Take(key)) {
    const std::string* text = TextOf(*node);
    if (text == nullptr) {
      WrongType(*node, key, "a path", "put it in quotes");
    } else if (text->empty() || HasControls(*text)) {
      Mistake(key, fmt::format("{} is no path", InTable(key)), "name a file or directory");
    } else {
      // What the file says starts at the file; what was typed starts where it was typed.
      std::error_code ignored;
      const bool is_typed = std::holds_alternative<ConfigWord>(node->value);
      const std::filesystem::path whole = is_typed ? std::filesystem::absolute(*text, ignored)
                                                   : std::filesystem::path(directory_) / *text;
      value = whole.lexically_normal().string();
    }
  }
  Explain(key, value);
}

void ConfigTableReader::OptionalPath(std::string_view key, std::string& value) {
  const ConfigEntry* entry = table_ == nullptr ? nullptr : FindEntry(*table_, key);
  const std::string* text = entry == nullptr ? nullptr : TextOf(entry->node);
  if (text == nullptr || !text->empty()) return Path(key, value);
  Take(key);
  value.clear();
  Explain(key, value);
}

void ConfigTableReader::Boolean(std::string_view key, bool& value) {
  if (const ConfigNode* node = Take(key)) {
    const std::optional<bool> boolean = BooleanOf(*node);
    if (!boolean) WrongType(*node, key, "true or false", fmt::format("write {} = true", key));
    value = boolean.value_or(value);
  }
  Explain(key, value ? "true" : "false");
}

void ConfigTableReader::Texts(std::string_view key, std::size_t most,
                              std::vector<std::string>& value) {
  const ConfigNode* node = Take(key);
  if (node != nullptr) {
    std::vector<std::string> texts;
    if (const auto* word = std::get_if<ConfigWord>(&node->value)) {
      texts = SplitAtCommas(word->text);
    } else if (const auto* items = std::get_if<ConfigArray>(&node->value)) {
      for (const ConfigNode& item : *items) {
        if (const auto* text = std::get_if<std::string>(&item.value)) {
          texts.push_back(*text);
        } else {
          WrongType(item, key, "a list of strings", "put each in quotes");
        }
      }
    } else {
      WrongType(*node, key, "a list of strings", fmt::format("write {} = [\"...\"]", key));
    }
    if (texts.size() > most) {
      Mistake(key, fmt::format("{} has {} entries", InTable(key), texts.size()),
              fmt::format("give at most {}", most));
    } else {
      value = std::move(texts);
    }
  }
  Explain(key, fmt::format("{}", fmt::join(value, ", ")));
}

void ConfigTableReader::Duration(std::string_view key, DurationRange range, Milliseconds& value) {
  if (const ConfigNode* node = Take(key)) {
    const std::string* text = TextOf(*node);
    const auto duration = text == nullptr ? std::nullopt : ParseDuration(*text);
    if (text == nullptr) {
      WrongType(*node, key, "a duration",
                fmt::format("write a number and a unit in quotes, such as \"{}\"",
                            FormatDuration(value)));
    } else if (!duration.has_value()) {
      Mistake(key, fmt::format("{} is no duration: \"{}\"", InTable(key), *text),
              fmt::format("write a number and one of ms, s, m, h, d, such as \"{}\"",
                          FormatDuration(value)));
    } else if (*duration < range.least || *duration > range.most) {
      Mistake(key, fmt::format("{} is out of range: \"{}\"", InTable(key), *text),
              fmt::format("give \"{}\" to \"{}\"", FormatDuration(range.least),
                          FormatDuration(range.most)));
    } else {
      value = *duration;
    }
  }
  Explain(key, FormatDuration(value));
}

void ConfigTableReader::Hours(std::string_view key, DurationRange range,
                              std::chrono::hours& value) {
  Milliseconds duration = value;
  Duration(key, range, duration);
  value = std::chrono::floor<std::chrono::hours>(duration);
  if (value != duration) {
    Mistake(key, fmt::format("{} must be whole hours", InTable(key)),
            fmt::format("give \"{}\" or \"{}h\"", FormatDuration(value), value.count() + 1));
  }
}

void ConfigTableReader::OptionalInteger(std::string_view key, IntegerRange range,
                                        std::string_view absent,
                                        std::optional<std::int64_t>& value) {
  if (!Has(key)) {
    Take(key);
    Explain(key, std::string(absent));
    return;
  }
  std::int64_t number = range.least;
  ReadInteger(key, range, number);
  value = number;
}

void ConfigTableReader::ReadInteger(std::string_view key, IntegerRange range, std::int64_t& value) {
  if (const ConfigNode* node = Take(key)) {
    const std::optional<std::int64_t> number = IntegerOf(*node);
    if (!number.has_value()) {
      WrongType(*node, key, "an integer", fmt::format("write {} = {}", key, value));
    } else if (*number < range.least || *number > range.most) {
      Mistake(key, fmt::format("{} is out of range: {}", InTable(key), *number),
              fmt::format("give {} to {}", range.least, range.most));
    } else {
      value = *number;
    }
  }
  Explain(key, fmt::format("{}", value));
}

void ConfigTableReader::Mistake(std::string_view key, std::string text, std::string fix) {
  findings_.Add(At(key), std::move(text), std::move(fix));
}

void ConfigTableReader::Require(std::string_view key, std::string_view example) {
  if (Has(key)) return;
  Mistake(key, fmt::format("{} lacks \"{}\"", name_.shown, key), fmt::format("add {}", example));
}

ConfigOrigin ConfigTableReader::At(std::string_view key) const {
  if (table_ == nullptr) return {};
  const ConfigEntry* entry = FindEntry(*table_, key);
  return entry == nullptr ? table_->at : entry->node.at;
}

void ConfigTableReader::Finish() {
  const auto* entries = table_ == nullptr ? nullptr : std::get_if<ConfigTable>(&table_->value);
  if (entries == nullptr) return;
  for (const ConfigEntry& entry : *entries) {
    if (std::ranges::find(known_, entry.key) != known_.end()) continue;
    const std::string_view nearest = Nearest(entry.key, known_);
    findings_.Add(entry.at, fmt::format("unknown key \"{}\" in {}", entry.key, name_.shown),
                  nearest.empty() ? fmt::format("known are {}", fmt::join(known_, ", "))
                                  : fmt::format("did you mean \"{}\"?", nearest));
  }
}

const ConfigNode* ConfigTableReader::Take(std::string_view key) {
  known_.push_back(key);
  const ConfigEntry* entry = table_ == nullptr ? nullptr : FindEntry(*table_, key);
  return entry == nullptr ? nullptr : &entry->node;
}

void ConfigTableReader::WrongType(const ConfigNode& node, std::string_view key,
                                  std::string_view wanted, std::string_view fix) {
  const auto* word = std::get_if<ConfigWord>(&node.value);
  const std::string seen =
      word == nullptr ? std::string(KindOf(node)) : fmt::format("\"{}\"", word->text);
  findings_.Add(node.at, fmt::format("{} must be {}, not {}", InTable(key), wanted, seen),
                std::string(fix));
}

void ConfigTableReader::Explain(std::string_view key, std::string value) {
  const ConfigOrigin at = Has(key) ? At(key) : ConfigOrigin{};
  findings_.Explain(fmt::format("{}.{}", name_.prefix, key), std::move(value), at);
}

std::string ConfigTableReader::InTable(std::string_view key) const {
  return fmt::format("\"{}\" in {}", key, name_.shown);
}

}  // namespace vmonce::app
