// Takes keys out of one table of the configuration, each with its type and bounds, and gathers
// every mistake instead of stopping at the first.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config.h"
#include "app/config_document.h"
#include "base/clock.h"

namespace vmonce::app {

// What reading gathers.
class ConfigFindings {
 public:
  void Add(const ConfigOrigin& at, std::string text, std::string fix);
  void Explain(std::string name, std::string value, const ConfigOrigin& at);

  bool HasMistakes() const { return !mistakes_.empty(); }
  // In the order of the file, at most limits::kConfigMistakes.
  std::vector<ConfigMistake> TakeMistakes();
  std::vector<ConfigValue> TakeValues() { return std::move(values_); }

 private:
  std::vector<ConfigMistake> mistakes_;
  std::vector<ConfigValue> values_;
};

struct IntegerRange {
  std::int64_t least;
  std::int64_t most;
};

struct DurationRange {
  Milliseconds least;
  Milliseconds most;
};

// The one of `known` that `word` is most likely a slip of; empty when none is near.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> known);

// Absolute, of letters, digits, '.', '-' and '_': what libvirt, QEMU and a URI read as one and the
// same.
bool IsPlainPath(std::string_view path);

// How a table is called in messages and in the names of values.
struct TableName {
  std::string shown;   // "[server]", "[[host]]"
  std::string prefix;  // "server", "host.local"
};

// Every getter leaves `value` alone when the key is absent or wrong, and reports what is wrong.
// What is borrowed outlives the reader; keys are literals.
class ConfigTableReader {
 public:
  // A null table is an absent one. Relative paths of the file start at `directory`.
  ConfigTableReader(const ConfigNode* table, TableName name, const std::string& directory,
                    ConfigFindings& findings);

  // Names the values from here on.
  void SetPrefix(std::string prefix) { name_.prefix = std::move(prefix); }

  bool Has(std::string_view key) const;

  // True when it was given and is a string.
  bool Text(std::string_view key, std::string& value);
  // One of `words`.
  void Choice(std::string_view key, std::span<const std::string_view> words, std::string& value);
  void Path(std::string_view key, std::string& value);
  // The same, and "" says that there is none.
  void OptionalPath(std::string_view key, std::string& value);
  // true or false.
  void Boolean(std::string_view key, bool& value);
  // A list of strings; outside the file, words between commas.
  void Texts(std::string_view key, std::size_t most, std::vector<std::string>& value);
  void Duration(std::string_view key, DurationRange range, Milliseconds& value);
  // A duration of whole hours.
  void Hours(std::string_view key, DurationRange range, std::chrono::hours& value);
  template <typename T>
  void Integer(std::string_view key, IntegerRange range, T& value) {
    std::int64_t number = static_cast<std::int64_t>(value);
    ReadInteger(key, range, number);
    value = static_cast<T>(number);
  }
  // Not given is said as `absent` in explanations.
  void OptionalInteger(std::string_view key, IntegerRange range, std::string_view absent,
                       std::optional<std::int64_t>& value);

  // About a key's value, or, when it is absent, about its table.
  void Mistake(std::string_view key, std::string text, std::string fix);
  // Reports the key as missing when it is.
  void Require(std::string_view key, std::string_view example);
  // Where the key's value stands; the table's place when it is absent.
  ConfigOrigin At(std::string_view key) const;

  // Says that somebody else reads the key.
  void Known(std::string_view key) { known_.push_back(key); }
  // Reports the keys that nobody asked for.
  void Finish();

 private:
  const ConfigNode* Take(std::string_view key);
  void ReadInteger(std::string_view key, IntegerRange range, std::int64_t& value);
  void WrongType(const ConfigNode& node, std::string_view key, std::string_view wanted,
                 std::string_view fix);
  void Explain(std::string_view key, std::string value);
  std::string InTable(std::string_view key) const;

  const ConfigNode* const table_;
  TableName name_;
  const std::string& directory_;
  ConfigFindings& findings_;
  std::vector<std::string_view> known_;
};

}  // namespace vmonce::app
