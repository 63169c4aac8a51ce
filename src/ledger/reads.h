// Everything that only reads. An error sticks to the connection, and what is answered then means
// nothing.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ledger/sqlite_db.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

class HotVms;

// `hot_vms`: where VMs may be found without their rows; null for the writer.
std::optional<std::variant<ports::Known, ports::KnownTombstone>> FindKey(
    Db& db, const model::ProjectId& project, const Digest& key_hash,
    const HotVms* hot_vms = nullptr);

// A place in a list, as told to callers and back: base64 of a letter for the list and the row's
// key. std::nullopt when the text is not one of that list.
std::string SequenceCursor(std::int64_t sequence);
std::optional<std::int64_t> ParseSequenceCursor(std::string_view text);
std::string VmCursor(const model::VmId& id);
std::optional<model::VmId> ParseVmCursor(std::string_view text);

struct OperationQuery {
  const model::ProjectId& project;
  const ports::OperationFilter& filter;
  int most;
  std::optional<std::int64_t> before;
};
ports::PageOf<model::Operation> ListOperations(Db& db, const OperationQuery& list);

struct VmQuery {
  const model::ProjectId& project;
  const ports::VmFilter& filter;
  int most;
  std::optional<model::VmId> before;
};
ports::PageOf<model::Vm> ListVms(Db& db, const VmQuery& list);

std::vector<model::Vm> VmsOf(Db& db, const model::OperationId& creator);
std::vector<model::TimelineEntry> Timeline(Db& db, const model::OperationId& id);
std::vector<model::Event> Outbox(Db& db, std::int64_t most);
ports::LedgerTotals Totals(Db& db);
std::optional<Time> NextDue(Db& db);

}  // namespace vmonce::ledger
