#include "ledger/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/sha256.h"
#include "ledger/hot_vms.h"
#include "ledger/rows.h"

namespace vmonce::ledger {
namespace {

constexpr char kOperationList = 'o';
constexpr char kVmList = 'v';

// A filter's conditions as SQL, and their values in the order of their places. Values are never
// part of the text, so that the texts are few and stay compiled.
class Conditions {
 public:
  template <typename... Values>
  void Add(std::string_view sql, const Values&... values) {
    text_ += text_.empty() ? " WHERE " : " AND ";
    text_ += sql;
    (AddValue(values), ...);
  }
  template <typename Value>
  void AddValue(const Value& value) {
    values_.push_back([value](Query& query) { query.Put(value); });
  }
  const std::string& text() const { return text_; }
  void Bind(Query& query) const {
    for (const auto& put : values_) put(query);
  }

 private:
  std::string text_;
  std::vector<std::function<void(Query&)>> values_;
};

// The VMs of the record with that key, whatever kind of request it was.
std::vector<model::VmId> VmsOfKey(Db& db, const model::ProjectId& project, const Digest& key) {
  const auto row = FindOperationByKey(db, project, key);
  return row ? row->vms : std::vector<model::VmId>();
}

Conditions VmConditions(const VmQuery& list) {
  const ports::VmFilter& filter = list.filter;
  Conditions conditions;
  conditions.Add("project = ?", list.project);
  if (list.before) conditions.Add("id < ?", *list.before);
  if (filter.state) conditions.Add("state = ?", ToString(*filter.state));
  const bool wants_deleted =
      filter.with_deleted || filter.key_hash || filter.state == model::VmState::kDeleted;
  if (!wants_deleted) conditions.Add("deleted_ms IS NULL");
  if (filter.name) {
    // Each half has an index of its own.
    conditions.Add(
        "id IN (SELECT id FROM vms WHERE project = ? AND name = ? AND holds_reservation = 1 "
        "UNION ALL SELECT id FROM vms WHERE project = ? AND name = ? AND holds_reservation = 0)",
        list.project, *filter.name, list.project, *filter.name);
  }
  if (filter.label) {
    conditions.Add("EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND value = ?)",
                   filter.label->first, filter.label->second);
  }
  return conditions;
}

Conditions OperationConditions(const OperationQuery& list) {
  const ports::OperationFilter& filter = list.filter;
  Conditions conditions;
  conditions.Add("project = ?", list.project);
  if (list.before) conditions.Add("sequence < ?", *list.before);
  if (filter.key_hash) conditions.Add("key_hash = ?", *filter.key_hash);
  if (filter.state) {
    conditions.Add("state = ?", ToString(*filter.state));
    if (!IsFinished(*filter.state)) conditions.Add("finished_ms IS NULL");
  }
  if (filter.kind) conditions.Add("kind = ?", ToString(*filter.kind));
  if (filter.vm) {
    conditions.Add(
        "sequence IN (SELECT sequence FROM operations WHERE vm_ids = ? AND kind <> 'create' "
        "UNION ALL SELECT sequence FROM operations WHERE id = "
        "(SELECT operation FROM vms WHERE id = ?))",
        *filter.vm, *filter.vm);
  }
  return conditions;
}

std::string Cursor(char list, std::string_view key) {
  std::string text = ToBase64(std::string(1, list) + std::string(key));
  // RFC 4648 section 5: a cursor goes into a query as it is.
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  text.erase(std::ranges::find(text, '='), text.end());
  return text;
}

std::optional<std::string> ParseCursor(char list, std::string_view text) {
  std::string padded(text);
  if (padded.find_first_of("+/=") != std::string::npos) return std::nullopt;
  std::ranges::replace(padded, '-', '+');
  std::ranges::replace(padded, '_', '/');
  while (padded.size() % 4 != 0) padded += '=';
  auto decoded = ParseBase64(padded);
  if (!decoded || decoded->empty() || decoded->front() != list) return std::nullopt;
  return decoded->substr(1);
}

// What the operation's row itself tells, and is therefore not written as lines.
std::vector<model::TimelineEntry> FirstLines(const OperationRow& row) {
  model::TimelineEntry accepted;
  accepted.operation = row.operation.id;
  accepted.at = row.operation.accepted;
  accepted.replica = row.accepted_by;
  accepted.event = "accepted";
  accepted.detail = row.operation.face;
  if (row.token) accepted.detail += " with token " + ToString(*row.token);
  if (row.accepted_by.empty()) return {accepted};
  model::TimelineEntry leased = accepted;
  leased.event = "leased";
  leased.detail = "fence 1";
  return {accepted, leased};
}

}  // namespace

std::optional<std::variant<ports::Known, ports::KnownTombstone>> FindKey(
    Db& db, const model::ProjectId& project, const Digest& key_hash, const HotVms* hot_vms) {
  if (auto row = FindOperationByKey(db, project, key_hash)) {
    // What has succeeded stays so, whenever its VMs are looked at; beside any other they must be of
    // the same moment.
    const bool may_be_newer =
        hot_vms != nullptr && row->operation.state == model::OperationState::kSucceeded;
    std::vector<model::Vm> vms;
    for (const model::VmId& id : row->vms) {
      auto vm = may_be_newer ? hot_vms->Find(id) : std::nullopt;
      if (!vm) vm = FindVm(db, id);
      if (vm) vms.push_back(std::move(*vm));
    }
    return ports::Known{std::move(row->operation), std::move(vms)};
  }
  if (auto tombstone = FindTombstone(db, project, key_hash)) {
    return ports::KnownTombstone{std::move(*tombstone)};
  }
  return std::nullopt;
}

std::string SequenceCursor(std::int64_t sequence) {
  return Cursor(kOperationList, std::to_string(sequence));
}

std::optional<std::int64_t> ParseSequenceCursor(std::string_view text) {
  const auto key = ParseCursor(kOperationList, text);
  if (!key) return std::nullopt;
  std::int64_t sequence = 0;
  const char* end = key->data() + key->size();
  const auto [stopped, error] = std::from_chars(key->data(), end, sequence);
  if (error != std::errc() || stopped != end || sequence < 1) return std::nullopt;
  return sequence;
}

std::string VmCursor(const model::VmId& id) {
  const auto& bytes = id.value.bytes;
  return Cursor(kVmList, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::optional<model::VmId> ParseVmCursor(std::string_view text) {
  const auto key = ParseCursor(kVmList, text);
  if (!key || key->size() != 16) return std::nullopt;
  return SplitIds(*key).front();
}

ports::PageOf<model::Operation> ListOperations(Db& db, const OperationQuery& list) {
  const Conditions conditions = OperationConditions(list);
  Query query = db.Prepare(fmt::format("SELECT {} FROM operations{} ORDER BY sequence DESC LIMIT ?",
                                       kOperationColumns, conditions.text()));
  conditions.Bind(query);
  query.Put(list.most + 1);
  ports::PageOf<model::Operation> page;
  while (query.Next()) {
    if (page.rows.size() == static_cast<std::size_t>(list.most)) {
      page.next = SequenceCursor(page.rows.back().sequence);
      break;
    }
    page.rows.push_back(ReadOperation(db, query).operation);
  }
  return page;
}

ports::PageOf<model::Vm> ListVms(Db& db, const VmQuery& list) {
  Conditions conditions = VmConditions(list);
  if (list.filter.key_hash) {
    // Few enough to be asked for one by one; a batch stays under limits::kBatchCount.
    const auto ids = VmsOfKey(db, list.project, *list.filter.key_hash);
    std::string places;
    for (std::size_t i = 0; i < ids.size(); ++i) places += i == 0 ? "?" : ", ?";
    conditions.Add(fmt::format("id IN ({})", places));
    for (const model::VmId& id : ids) conditions.AddValue(id);
  }
  Query query = db.Prepare(
      fmt::format("SELECT {} FROM vms{} ORDER BY id DESC LIMIT ?", kVmColumns, conditions.text()));
  conditions.Bind(query);
  query.Put(list.most + 1);
  ports::PageOf<model::Vm> page;
  while (query.Next()) {
    if (page.rows.size() == static_cast<std::size_t>(list.most)) {
      page.next = VmCursor(page.rows.back().id);
      break;
    }
    page.rows.push_back(ReadVm(db, query));
  }
  return page;
}

std::vector<model::Vm> VmsOf(Db& db, const model::OperationId& creator) {
  const auto row = FindOperation(db, creator);
  if (!row || row->operation.kind != model::OperationKind::kCreate) return {};
  return FindVms(db, row->vms);
}

std::vector<model::TimelineEntry> Timeline(Db& db, const model::OperationId& id) {
  const auto row = FindOperation(db, id);
  if (!row) return {};
  std::vector<model::TimelineEntry> lines = FirstLines(*row);
  Query query = db.Prepare(
      "SELECT at_ms, replica, attempt, item_index, event, detail FROM timeline "
      "WHERE operation = ?1 ORDER BY number");
  query.Bind(row->operation.sequence);
  while (query.Next()) {
    model::TimelineEntry& line = lines.emplace_back();
    line.operation = id;
    line.at = query.At();
    line.replica = query.Text();
    line.attempt = query.SmallInt();
    line.index = query.SmallInt();
    line.event = query.Text();
    line.detail = query.Text();
  }
  return lines;
}

std::vector<model::Event> Outbox(Db& db, std::int64_t most) {
  Query query = db.Prepare(
      "SELECT id, type, project, subject, data, at_ms FROM outbox ORDER BY number LIMIT ?1");
  query.Bind(most);
  std::vector<model::Event> events;
  while (query.Next()) {
    model::Event& event = events.emplace_back();
    event.id = query.Id();
    event.type = query.Text();
    event.project.value = query.Text();
    event.subject = query.Text();
    event.data = query.Text();
    event.at = query.At();
  }
  return events;
}

ports::LedgerTotals Totals(Db& db) {
  ports::LedgerTotals totals;
  for (const char* state : {"accepted", "running", "verifying"}) {
    totals.operations_in_state[state] = 0;
  }
  Query unfinished = db.Prepare(
      "SELECT state, count(*), sum(is_stuck), min(accepted_ms) FROM operations "
      "WHERE finished_ms IS NULL GROUP BY state");
  while (unfinished.Next()) {
    const std::string state = unfinished.Text();
    totals.operations_in_state[state] = unfinished.Int();
    totals.stuck += unfinished.Int();
    const Time oldest = unfinished.At();
    totals.oldest_unfinished = std::min(totals.oldest_unfinished.value_or(oldest), oldest);
  }
  // The finished ones may be millions: their counters are kept.
  Query finished =
      db.Prepare("SELECT unfinished, succeeded, failed, cancelled, last_sequence FROM totals");
  if (finished.Next()) {
    totals.unfinished = finished.Int();
    totals.operations_in_state["succeeded"] = finished.Int();
    totals.operations_in_state["failed"] = finished.Int();
    totals.operations_in_state["cancelled"] = finished.Int();
    totals.last_sequence = finished.Int();
  }
  // Rows are numbered without gaps and dropped from the front only.
  Query outbox = db.Prepare(
      "SELECT coalesce((SELECT max(number) FROM outbox) - (SELECT min(number) FROM outbox) + 1, 0),"
      " (SELECT at_ms FROM outbox ORDER BY number LIMIT 1)");
  if (outbox.Next()) {
    totals.outbox = outbox.Int();
    totals.oldest_event = outbox.MaybeAt();
  }
  return totals;
}

std::optional<Time> NextDue(Db& db) {
  Query query = db.Prepare(
      "SELECT max(due_ms, lease_until_ms) FROM operations WHERE finished_ms IS NULL "
      "AND (lease_owner = 'unleased' OR lease_owner GLOB 'r-*') "
      "ORDER BY max(due_ms, lease_until_ms) LIMIT 1");
  if (!query.Next()) return std::nullopt;
  return query.At();
}

}  // namespace vmonce::ledger
