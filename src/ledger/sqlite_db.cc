#include "ledger/sqlite_db.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "ledger/hot_vms.h"

namespace vmonce::ledger {

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Query::Put(std::nullptr_t) {
  ++bound_;  // Bindings start as NULL.
}

void Query::Put(std::int64_t value) {
  if (statement_ != nullptr) sqlite3_bind_int64(statement_, ++bound_, value);
}

void Query::Put(std::string_view text) {
  if (statement_ == nullptr) return;
  // A null pointer would bind NULL.
  const char* data = text.data() == nullptr ? "" : text.data();
  sqlite3_bind_text64(statement_, ++bound_, data, text.size(), owner_, SQLITE_UTF8);
}

void Query::Put(std::span<const std::uint8_t> blob) {
  if (statement_ == nullptr) return;
  const void* data = blob.data() == nullptr ? static_cast<const void*>("") : blob.data();
  sqlite3_bind_blob64(statement_, ++bound_, data, blob.size(), owner_);
}

void Query::Put(const model::Resources& amounts) {
  Bind(amounts.vms, amounts.cpus, amounts.memory_mib, amounts.disk_gib);
}

void Query::PutRowOf(const Query& other) {
  if (statement_ == nullptr || other.statement_ == nullptr) return;
  for (int column = 0; column < other.Columns(); ++column) {
    sqlite3_bind_value(statement_, ++bound_, sqlite3_column_value(other.statement_, column));
  }
}

bool Query::Next() {
  column_ = 0;
  if (statement_ == nullptr || !db_.ok()) return false;
  if (writes_vms_) db_.NoteRun(true);
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) db_.Note(code, sqlite3_sql(statement_));
  return false;
}

bool Query::Done() {
  const bool has_row = Next();
  CHECK_MSG(!has_row, "a statement that gives no rows gave one");
  return db_.ok();
}

int Query::Columns() const { return sqlite3_column_count(statement_); }

bool Query::IsNull() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }

std::int64_t Query::Int() { return sqlite3_column_int64(statement_, column_++); }

std::string Query::Text() {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_++));
  return data == nullptr ? std::string() : std::string(data, size);
}

std::string Query::Blob() {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column_));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_++));
  return data == nullptr ? std::string() : std::string(data, size);
}

std::optional<Time> Query::MaybeAt() {
  if (!IsNull()) return At();
  Skip();
  return std::nullopt;
}

model::Resources Query::Amounts() {
  model::Resources amounts;
  amounts.vms = Int();
  amounts.cpus = Int();
  amounts.memory_mib = Int();
  amounts.disk_gib = Int();
  return amounts;
}

Uuid Query::Id() {
  const std::string bytes = Blob();
  Uuid id;
  if (bytes.size() != id.bytes.size()) {
    db_.Fail(ErrorCode::kInternal, "a column that holds an id is not 16 bytes long");
    return id;
  }
  std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

Digest Query::Hash() {
  const std::string bytes = Blob();
  Digest digest{};
  if (bytes.size() != digest.size()) {
    db_.Fail(ErrorCode::kInternal, "a column that holds a hash is not 32 bytes long");
    return digest;
  }
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

std::optional<Uuid> Query::MaybeId() {
  if (!IsNull()) return Id();
  Skip();
  return std::nullopt;
}

Result<std::unique_ptr<Db>> Db::Open(const std::string& path, OpenMode mode) {
  // Its counters of memory cost a lock at every allocation. Refused, and no matter, once it is set.
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  const int access = mode == OpenMode::kReadOnly ? SQLITE_OPEN_READONLY
                                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const std::string name = path.empty() ? ":memory:" : path;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw,
                                   access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  if (code != SQLITE_OK) {
    std::string cause = raw == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(raw);
    sqlite3_close_v2(raw);
    return vmonce::Fail(ErrorCode::kUnavailable, fmt::format("{}: {}", name, cause));
  }
  // Small allocations of statements, without the allocator and its lock. Nothing depends on it.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_LOOKASIDE, nullptr, 1200, 500);
  return std::make_unique<Db>(raw);
}

Db::~Db() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement.raw);
  const int code = sqlite3_close(db_);
  CHECK_MSG(code == SQLITE_OK, "a statement outlived its connection");
}

Query Db::Prepare(std::string_view sql) {
  if (!ok()) return Query(*this, nullptr);
  const auto known = statements_.find(sql);
  if (known != statements_.end()) {
    CHECK_MSG(sqlite3_stmt_busy(known->second.raw) == 0, sql);
    return Query(*this, known->second.raw, known->second.writes_vms);
  }
  sqlite3_stmt* statement = nullptr;
  writes_vms_ = false;
  const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) {
    Note(code, sql);
    return Query(*this, nullptr);
  }
  statements_.emplace(sqlite3_sql(statement), Statement{statement, writes_vms_});
  return Query(*this, statement, writes_vms_);
}

void Db::RunScript(const std::string& sql) {
  if (!ok()) return;
  writes_vms_ = false;
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  NoteRun(writes_vms_);
  if (code != SQLITE_OK) Note(code, sql);
}

void Db::Tell(HotVms* hot_vms) {
  hot_vms_ = hot_vms;
  sqlite3_set_authorizer(db_, &Db::NoteTable, this);
}

// Asked while a statement is prepared, with every table that it writes: no text can hide one.
int Db::NoteTable(void* self, int action, const char* table, const char*, const char*,
                  const char*) {
  const bool is_write =
      action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE;
  if (is_write && std::string_view(table) == "vms") static_cast<Db*>(self)->writes_vms_ = true;
  return SQLITE_OK;
}

void Db::NoteRun(bool writes_vms) {
  if (writes_vms && !is_told_ && hot_vms_ != nullptr) hot_vms_->WroteOthers();
}

int Db::Changes() const { return ok() ? sqlite3_changes(db_) : 0; }

void Db::Fail(ErrorCode code, std::string detail) {
  if (error_) return;
  error_ = Error{code, std::move(detail)};
  last_code_ = SQLITE_OK;
}

std::optional<Error> Db::TakeError() { return std::exchange(error_, std::nullopt); }

void Db::Note(int code, std::string_view sql) {
  if (error_) return;
  error_ = Error{CodeOf(code), fmt::format("{} (SQLite {}) in: {}", sqlite3_errmsg(db_), code,
                                           sql.substr(0, 60))};
  last_code_ = code & 0xff;
}

ErrorCode CodeOf(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_INTERRUPT: return ErrorCode::kUnavailable;
    default: return ErrorCode::kInternal;  // SQLite's codes are an open set.
  }
}

}  // namespace vmonce::ledger
