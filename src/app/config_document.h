// A TOML file as a plain tree in which every key and value knows where it stands. The one place
// that knows the TOML library.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace vmonce::app {

// Where something was said: a file with line and column (from 1), or, with line 0, the name of what
// overrode the file: "--set limits.workers=4", "VMONCE_LISTEN". Empty: nobody said it, it is the
// default.
struct ConfigOrigin {
  std::string source;
  int line = 0;
  int column = 0;

  bool IsFile() const { return line > 0; }
};

struct ConfigNode;
struct ConfigEntry;
using ConfigTable = std::vector<ConfigEntry>;
using ConfigArray = std::vector<ConfigNode>;
// Said outside the file, where there are no types: means whatever its key's type makes of it.
struct ConfigWord {
  std::string text;
};
// A TOML type that no key takes: a date, a float.
struct ConfigOther {
  std::string_view kind;
};

struct ConfigNode {
  ConfigOrigin at;
  std::variant<ConfigTable, ConfigArray, std::string, std::int64_t, bool, ConfigWord, ConfigOther>
      value;
};

struct ConfigEntry {
  std::string key;
  ConfigOrigin at;  // Of the key; the node has the value's.
  ConfigNode node;
};

// "a table", "a list", "a string", "an integer", ...
std::string_view KindOf(const ConfigNode& node);

// A string or a word; null for anything else.
const std::string* TextOf(const ConfigNode& node);

// Null when the table has no such key. A node that is no table has none.
const ConfigEntry* FindEntry(const ConfigNode& table, std::string_view key);
ConfigEntry* FindEntry(ConfigNode& table, std::string_view key);

struct ConfigSyntaxError {
  ConfigOrigin at;
  std::string text;
};

// `source` is the file's name as origins show it. The root is a table. TOML 1.0; a key given twice
// is a syntax error.
std::expected<ConfigNode, ConfigSyntaxError> ParseConfigDocument(std::string_view toml,
                                                                 const std::string& source);

}  // namespace vmonce::app
