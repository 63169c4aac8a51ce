#include "ledger/copy_rows.h"

#include <fmt/format.h>

#include <vector>

namespace vmonce::ledger {
namespace {

std::vector<std::string> TablesOf(Db& db) {
  std::vector<std::string> tables;
  Query query = db.Prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  while (query.Next()) tables.push_back(query.Text());
  return tables;
}

std::string InsertInto(const std::string& table, int columns) {
  std::string values = "?";
  for (int column = 1; column < columns; ++column) values += ", ?";
  return fmt::format("INSERT INTO {} VALUES ({})", table, values);
}

}  // namespace

void CopyRows(Db& from, Db& to) {
  for (const std::string& table : TablesOf(from)) {
    to.Run(fmt::format("DELETE FROM {}", table));
    Query rows = from.Prepare(fmt::format("SELECT * FROM {}", table));
    if (!rows.Next()) continue;
    const std::string insert = InsertInto(table, rows.Columns());
    do {
      Query row = to.Prepare(insert);
      row.PutRowOf(rows);
      row.Done();
    } while (rows.Next());
  }
}

}  // namespace vmonce::ledger
