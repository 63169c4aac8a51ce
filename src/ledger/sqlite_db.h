// A thin face of SQLite: one connection with its prepared statements. Errors stick to the
// connection: after one, every statement does nothing and finds no row until TakeError(), so that a
// transaction's code reads straight on and is asked once, at its end.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"
#include "base/sha256.h"
#include "model/host.h"
#include "model/ids.h"

namespace vmonce::ledger {

class Db;
class HotVms;

// A statement being run; given back to its connection at the end of its life. At most one Query of
// one text lives at a time.
class Query {
 public:
  Query(Db& db, sqlite3_stmt* statement, bool writes_vms = false)
      : db_(db), statement_(statement), writes_vms_(writes_vms) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Binds ?1, ?2, ... in order.
  template <typename... Values>
  Query& Bind(const Values&... values) {
    (Put(values), ...);
    return *this;
  }
  void Put(std::nullptr_t);
  void Put(std::int64_t value);
  void Put(int value) { Put(static_cast<std::int64_t>(value)); }
  void Put(bool value) { Put(static_cast<std::int64_t>(value)); }
  void Put(std::string_view text);
  void Put(const std::string& text) { Put(std::string_view(text)); }
  void Put(const char* text) { Put(std::string_view(text)); }
  void Put(std::span<const std::uint8_t> blob);
  void Put(const Digest& digest) { Put(std::span<const std::uint8_t>(digest)); }
  void Put(const Uuid& uuid) { Put(std::span<const std::uint8_t>(uuid.bytes)); }
  void Put(Time time) { Put(ToUnixMs(time)); }
  void Put(const model::Resources& amounts);
  template <typename Tag>
  void Put(const StrongUuid<Tag>& id) {
    Put(id.value);
  }
  template <typename Tag>
  void Put(const model::StrongText<Tag>& id) {
    Put(id.value);
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    value ? Put(*value) : Put(nullptr);
  }
  // Every column of another query's present row, as it is.
  void PutRowOf(const Query& other);

  // Goes to the next row; false when there is none or after an error.
  bool Next();
  // Runs a statement that gives no rows. False after an error.
  bool Done();

  int Columns() const;
  // The columns of the present row, from left to right.
  bool IsNull() const;  // Of the next one; does not move on.
  void Skip() { ++column_; }
  std::int64_t Int();
  int SmallInt() { return static_cast<int>(Int()); }
  bool Bool() { return Int() != 0; }
  std::string Text();
  std::string Blob();
  Time At() { return FromUnixMs(Int()); }
  std::optional<Time> MaybeAt();
  model::Resources Amounts();
  Uuid Id();      // A column of another length sticks kInternal to the connection.
  Digest Hash();  // Likewise.
  std::optional<Uuid> MaybeId();

 private:
  friend class Db;

  Db& db_;
  sqlite3_stmt* statement_;
  const bool writes_vms_;
  // Who frees what is bound: by default SQLite keeps a copy.
  sqlite3_destructor_type owner_ = SQLITE_TRANSIENT;
  int bound_ = 0;
  int column_ = 0;
};

enum class OpenMode {
  kReadWrite,  // Made when there is none.
  kReadOnly,
};

// Used by one thread at a time.
class Db {
 public:
  // An empty path is a database in memory.
  static Result<std::unique_ptr<Db>> Open(const std::string& path, OpenMode mode);
  // Takes over an open connection.
  explicit Db(sqlite3* db) : db_(db) {}
  ~Db();
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;

  // The text is compiled once and kept with the connection.
  Query Prepare(std::string_view sql);

  // One statement that gives no rows.
  template <typename... Values>
  bool Run(std::string_view sql, const Values&... values) {
    Query query = Prepare(sql);
    query.owner_ = SQLITE_STATIC;  // The values live as long as this call.
    return query.Bind(values...).Done();
  }
  // Many statements, not kept.
  void RunScript(const std::string& sql);

  // Rows that the last INSERT, UPDATE or DELETE changed; 0 after an error.
  int Changes() const;
  // Rows that were changed since the connection was opened, in whatever transactions.
  std::int64_t ChangesEver() const { return sqlite3_total_changes64(db_); }

  bool ok() const { return !error_.has_value(); }
  // Makes an error of one's own stick: a row that breaks an invariant.
  void Fail(ErrorCode code, std::string detail);
  // What stuck, if anything; the connection works again.
  std::optional<Error> TakeError();
  // SQLite's primary result code of the error that stuck last; SQLITE_OK when it was one of ours.
  int LastCode() const { return last_code_; }

  // False inside a transaction. To be asked after any error: SQLite ends some transactions itself.
  bool IsAutocommit() const { return sqlite3_get_autocommit(db_) != 0; }

  sqlite3* Raw() { return db_; }

  // The writer's: is told of every write to the table `vms`. Outlives this, and the statements that
  // are prepared from now on.
  void Tell(HotVms* hot_vms);
  // Null for a connection that only reads.
  HotVms* hot_vms() { return hot_vms_; }
  // For a statement whose rows are told by name.
  template <typename... Values>
  bool RunTold(std::string_view sql, const Values&... values) {
    is_told_ = true;
    const bool is_done = Run(sql, values...);
    is_told_ = false;
    return is_done;
  }

 private:
  friend class Query;
  struct Statement {
    sqlite3_stmt* raw = nullptr;
    bool writes_vms = false;
  };
  void Note(int code, std::string_view sql);
  void NoteRun(bool writes_vms);
  static int NoteTable(void* self, int action, const char* table, const char*, const char*,
                       const char*);

  sqlite3* db_;
  std::unordered_map<std::string_view, Statement> statements_;  // Keys live in the statements.
  HotVms* hot_vms_ = nullptr;
  bool is_told_ = false;
  bool writes_vms_ = false;  // The statement that is being prepared.
  std::optional<Error> error_;
  int last_code_ = 0;
};

// What an SQLite result code says about a statement that was not a COMMIT.
ErrorCode CodeOf(int sqlite_code);

}  // namespace vmonce::ledger
