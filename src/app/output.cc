#include "app/output.h"

#include <fmt/format.h>

#include "app/json_text.h"
#include "app/ways_in.h"

namespace vmonce::app {
namespace {

using boost::json::value;
using Items = std::vector<value>;

constexpr Column kVmColumnTable[] = {
    {"NAME", "name"},   {"STATE", "state"},        {"OBSERVED", "observed"},
    {"IMAGE", "image"}, {"HOST", "host"},          {"ADDRESS", "", AddressesOf},
    {"ID", "id"},       {"CREATED", "created_at"},
};

// What a person looks for in a table at a glance.
std::string_view ColourOf(std::string_view cell) {
  if (cell == "ready" || cell == "succeeded" || cell == "active" || cell == "ok") {
    return "\033[32m";
  }
  if (cell == "failed" || cell == "missing" || cell == "dead" || cell == "fail") {
    return "\033[31m";
  }
  if (cell == "warn" || cell == "draining") return "\033[33m";
  if (cell == "creating" || cell == "running" || cell == "verifying" || cell == "deleting") {
    return "\033[33m";
  }
  return "";
}

// Width as columns of a terminal: bytes that continue a UTF-8 character take none.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void PrintRow(Terminal& terminal, const std::vector<std::string>& cells,
              const std::vector<std::size_t>& widths, bool is_coloured) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string_view colour = is_coloured ? ColourOf(cells[i]) : "";
    line += fmt::format("{}{}{}", colour, cells[i], colour.empty() ? "" : "\033[0m");
    // Nothing after the last cell: a copied line has no trailing blanks.
    if (i + 1 < cells.size()) line.append(widths[i] - Width(cells[i]) + 2, ' ');
  }
  terminal.Out(line + "\n");
}

std::string OneLine(std::string cell) {
  for (char& c : cell) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return Printable(cell);
}

std::vector<std::size_t> WidthsOf(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  return widths;
}

void PrintTable(Terminal& terminal, const Items& items, std::span<const Column> columns) {
  std::vector<std::vector<std::string>> rows(1);
  for (const Column& column : columns) rows[0].emplace_back(column.title);
  for (const value& item : items) {
    auto& row = rows.emplace_back();
    for (const Column& column : columns) {
      row.push_back(OneLine(column.cell ? column.cell(item) : CellAt(item, column.path)));
    }
  }
  const std::vector<std::size_t> widths = WidthsOf(rows);
  const bool has_colour = terminal.traits().out_has_colour;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    PrintRow(terminal, rows[i], widths, has_colour && i > 0);
  }
}

// A VM's or an image's name, an id, or the host that a sweep's report is about.
void PrintName(Terminal& terminal, const value& item) {
  for (const char* member : {"name", "id", "host"}) {
    const std::string text = TextAt(item, member);
    if (text.empty()) continue;
    terminal.Out(text + "\n");
    return;
  }
}

// False for the formats that are no documents.
bool PrintAsDocument(Terminal& terminal, OutputFormat format, const value& document) {
  switch (format) {
    case OutputFormat::kJson: terminal.Out(PrettyJson(document) + "\n"); return true;
    case OutputFormat::kJsonLine: terminal.Out(CompactJson(document) + "\n"); return true;
    case OutputFormat::kYaml: terminal.Out(Yaml(document)); return true;
    case OutputFormat::kTable:
    case OutputFormat::kJsonLines:
    case OutputFormat::kName: return false;
  }
  return false;
}

void PrintMembers(Terminal& terminal, const value& item) {
  if (!item.is_object()) {
    terminal.Out(CompactJson(item) + "\n");
    return;
  }
  std::size_t width = 0;
  for (const auto& member : item.get_object()) width = std::max(width, member.key().size());
  for (const auto& member : item.get_object()) {
    const std::string_view name = member.key();
    terminal.Out(fmt::format("{:<{}}  {}\n", name, width, OneLine(CellAt(item, name))));
  }
}

}  // namespace

const std::span<const Column> kVmColumns{kVmColumnTable};

void PrintRows(Terminal& terminal, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> lines;
  for (const auto& row : rows) {
    auto& line = lines.emplace_back();
    for (const std::string& cell : row) line.push_back(OneLine(cell));
  }
  const std::vector<std::size_t> widths = WidthsOf(lines);
  for (const auto& line : lines) PrintRow(terminal, line, widths, false);
}

std::optional<OutputFormat> ParseOutputFormat(std::string_view text) {
  if (text == "table") return OutputFormat::kTable;
  if (text == "json") return OutputFormat::kJson;
  if (text == "jsonl") return OutputFormat::kJsonLines;
  if (text == "yaml") return OutputFormat::kYaml;
  if (text == "name") return OutputFormat::kName;
  return std::nullopt;
}

void PrintItems(Terminal& terminal, OutputFormat format, const Items& items,
                std::span<const Column> columns) {
  boost::json::object document;
  document["items"] = boost::json::array(items.begin(), items.end());
  PrintDocument(terminal, format, document, items, columns);
}

void PrintOne(Terminal& terminal, OutputFormat format, const value& item) {
  if (PrintAsDocument(terminal, format, item)) return;
  if (format == OutputFormat::kTable) PrintMembers(terminal, item);
  if (format == OutputFormat::kJsonLines) terminal.Out(CompactJson(item) + "\n");
  if (format == OutputFormat::kName) PrintName(terminal, item);
}

void PrintDocument(Terminal& terminal, OutputFormat format, const value& document,
                   const Items& items, std::span<const Column> columns) {
  if (PrintAsDocument(terminal, format, document)) return;
  if (format == OutputFormat::kTable) {
    PrintTable(terminal, items, columns);
    return;
  }
  for (const value& item : items) {
    if (format == OutputFormat::kName) {
      PrintName(terminal, item);
    } else {
      terminal.Out(CompactJson(item) + "\n");
    }
  }
}

}  // namespace vmonce::app
