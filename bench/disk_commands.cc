// What the disk and SQLite give on their own.
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/check.h"
#include "base/system.h"
#include "base/unique_fd.h"
#include "bench/commands.h"
#include "bench/samples.h"

namespace vmonce::bench {
namespace {

// How often `once` can be done in that time; prints it.
template <typename Once>
void MeasureRate(const Arguments& arguments, Once once) {
  const auto clock = NewSystemClock();
  const double seconds = arguments.Seconds("seconds");
  Samples samples;
  const Instant begin = clock->Monotonic();
  Instant now = begin;
  while (SecondsBetween(begin, now) < seconds) {
    once();
    const Instant done = clock->Monotonic();
    samples.Add(now, done);
    now = done;
  }
  fmt::print("{{\"rate\":{:.1f},\"count\":{},{}}}\n",
             static_cast<double>(samples.count()) / SecondsBetween(begin, now), samples.count(),
             samples.Json());
}

void RunSql(sqlite3* db, const char* sql) {
  CHECK_MSG(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sqlite3_errmsg(db));
}

}  // namespace

void MeasureAppends(const Arguments& arguments) {
  const std::string path = arguments.Text("dir") + "/appends";
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  CHECK_MSG(file.IsOpen(), path);
  const std::array<char, 4096> block{};
  MeasureRate(arguments, [&] {
    CHECK(write(file.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size()));
    CHECK(fdatasync(file.get()) == 0);
  });
  std::filesystem::remove(path);
}

void MeasureCommits(const Arguments& arguments) {
  const std::string path = arguments.Text("dir") + "/commits.db";
  std::filesystem::remove(path);
  sqlite3* db = nullptr;
  CHECK_MSG(sqlite3_open(path.c_str(), &db) == SQLITE_OK, path);
  RunSql(db,
         "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
         "CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT NOT NULL);");
  sqlite3_stmt* insert = nullptr;
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO rows (text) VALUES (hex(randomblob(50)))", -1, &insert,
                           nullptr) == SQLITE_OK);
  MeasureRate(arguments, [&] {
    CHECK(sqlite3_step(insert) == SQLITE_DONE);
    sqlite3_reset(insert);
  });
  sqlite3_finalize(insert);
  CHECK(sqlite3_close(db) == SQLITE_OK);
  std::filesystem::remove(path);
}

}  // namespace vmonce::bench
