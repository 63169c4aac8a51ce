// What a command puts on stdout, in the format that was asked for. Names of members equal the API's
// and do not change within v1.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/terminal.h"

namespace vmonce::app {

enum class OutputFormat {
  kTable,
  kJson,
  kJsonLine,   // --json: the same document on one line.
  kJsonLines,  // One item a line.
  kYaml,
  kName,  // One name a line, for scripts; the id where there is no name.
};

std::optional<OutputFormat> ParseOutputFormat(std::string_view text);

struct Column {
  std::string_view title;
  std::string_view path;  // Into the item; see CellAt().
  // Of what stands at several places; null: what is at `path`.
  std::string (*cell)(const boost::json::value& item) = nullptr;
};

extern const std::span<const Column> kVmColumns;

// Cells below each other, for what is no list of the API. Nothing is cut.
void PrintRows(Terminal& terminal, const std::vector<std::vector<std::string>>& rows);

// Items of a list. Documents are {"items": [...]}, as the API's are.
void PrintItems(Terminal& terminal, OutputFormat format,
                const std::vector<boost::json::value>& items, std::span<const Column> columns);

// One thing. As a table: a line for every member.
void PrintOne(Terminal& terminal, OutputFormat format, const boost::json::value& item);

// A document around items: `document` where the format is a document, the items elsewhere.
void PrintDocument(Terminal& terminal, OutputFormat format, const boost::json::value& document,
                   const std::vector<boost::json::value>& items, std::span<const Column> columns);

}  // namespace vmonce::app
