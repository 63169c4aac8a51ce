#include "ledger/group_commit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "base/fake_clock.h"
#include "base/system.h"
#include "base/temp_dir.h"

namespace vmonce::ledger {
namespace {

// SQLite's way to the disk for as long as this lives, with a disk that can be full: then nothing is
// written.
class FullableDisk {
 public:
  FullableDisk() : real_(*sqlite3_vfs_find(nullptr)), vfs_(real_) {
    vfs_.zName = "fullable";
    vfs_.pAppData = this;
    vfs_.xOpen = &Open;
    EXPECT_EQ(sqlite3_vfs_register(&vfs_, 1), SQLITE_OK);
  }
  ~FullableDisk() { sqlite3_vfs_unregister(&vfs_); }
  FullableDisk(const FullableDisk&) = delete;
  FullableDisk& operator=(const FullableDisk&) = delete;

  std::atomic<bool> is_full = false;

 private:
  // SQLite's methods take no argument of ours; one such disk lives at a time.
  static inline FullableDisk* self = nullptr;

  static int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    self = static_cast<FullableDisk*>(vfs->pAppData);
    const int code = self->real_.xOpen(&self->real_, name, file, flags, out);
    // Commits are written to the log. The database's own methods differ.
    if (file->pMethods == nullptr || (flags & SQLITE_OPEN_WAL) == 0) return code;
    self->real_write_ = file->pMethods->xWrite;
    self->methods_ = *file->pMethods;
    self->methods_.xWrite = &Write;
    file->pMethods = &self->methods_;
    return code;
  }
  static int Write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    return self->is_full ? SQLITE_FULL : self->real_write_(file, bytes, count, at);
  }

  sqlite3_vfs real_;
  sqlite3_vfs vfs_;
  sqlite3_io_methods methods_{};
  int (*real_write_)(sqlite3_file*, const void*, int, sqlite3_int64) = nullptr;
};

// A table of texts in a file that never grows beyond a few pages.
class GroupCommitTest : public testing::Test {
 protected:
  void SetUp() override {
    auto db = Db::Open(dir_.File("test.db"), OpenMode::kReadWrite);
    ASSERT_TRUE(db.has_value());
    (*db)->RunScript(
        "CREATE TABLE t (name TEXT PRIMARY KEY, filler BLOB); "
        "CREATE TABLE usage (project, vms, cpus, memory_mib, disk_gib)");
    ConnectionOptions options;
    options.path = dir_.File("test.db");
    options.page_cache_kib = 1024;
    options.max_pages = 40;
    connections_ = std::make_unique<Connections>(options, std::move(*db), *threads_, *logger_);
    ASSERT_TRUE(connections_->Start().has_value());
    commit_ = std::make_unique<GroupCommit>(*connections_, clock_, *threads_, 64);
  }

  static void Insert(Tx& tx, const std::string& name, int bytes = 10) {
    tx.db.Run("INSERT INTO t VALUES (?1, zeroblob(?2))", name, bytes);
  }

  std::int64_t Count(const std::string& name) {
    std::int64_t count = -1;
    const Status read = connections_->Read([&](Db& db) {
      Query query = db.Prepare("SELECT count(*) FROM t WHERE name = ?1");
      if (query.Bind(name).Next()) count = query.Int();
    });
    EXPECT_TRUE(read.has_value());
    return count;
  }

  void WaitFor(const std::function<bool()>& state) {
    for (int i = 0; i < 10'000 && !state(); ++i) threads_->SleepFor(Milliseconds(1), {});
    EXPECT_TRUE(state());
  }

  // Runs these at once, in one batch and in this order.
  std::vector<Status> RunTogether(const std::vector<GroupCommit::Work>& works) {
    std::vector<Status> results(works.size());
    std::atomic<bool> has_begun = false;
    std::atomic<bool> may_go = false;
    std::vector<std::unique_ptr<Thread>> callers;
    callers.push_back(threads_->Spawn("leader", [&](std::stop_token) {
      const Status led = commit_->Run([&](Tx&) -> Status {
        has_begun = true;
        WaitFor([&] { return may_go.load(); });
        return {};
      });
      EXPECT_TRUE(led.has_value());
    }));
    WaitFor([&] { return has_begun.load(); });
    for (std::size_t i = 0; i < works.size(); ++i) {
      callers.push_back(threads_->Spawn(
          "caller", [&, i](std::stop_token) { results[i] = commit_->Run(works[i]); }));
      WaitFor([&] { return commit_->Waiting() == i + 1; });
    }
    may_go = true;
    callers.clear();
    return results;
  }

  Status InsertAlone(const std::string& name) {
    return commit_->Run([&](Tx& tx) -> Status {
      Insert(tx, name);
      return {};
    });
  }

  FullableDisk disk_;
  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  std::unique_ptr<Logger> logger_ = NewNullLogger();
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<GroupCommit> commit_;
};

TEST_F(GroupCommitTest, AMemberThatFailsUndoesItselfAlone) {
  const auto results = RunTogether({
      [](Tx& tx) -> Status {
        Insert(tx, "a");
        return {};
      },
      [](Tx& tx) -> Status {
        Insert(tx, "b");
        return Fail(ErrorCode::kConflict, "no");
      },
      [](Tx& tx) -> Status {
        Insert(tx, "c");
        Insert(tx, "a");  // There already: an error of the connection.
        return {};
      },
      [](Tx& tx) -> Status {
        Insert(tx, "d");
        return {};
      },
  });
  EXPECT_TRUE(results[0].has_value());
  EXPECT_EQ(results[1].error().code, ErrorCode::kConflict);
  EXPECT_EQ(results[2].error().code, ErrorCode::kInternal);
  EXPECT_TRUE(results[3].has_value());
  EXPECT_EQ(Count("a"), 1);
  EXPECT_EQ(Count("b"), 0);
  EXPECT_EQ(Count("c"), 0);
  EXPECT_EQ(Count("d"), 1);
}

TEST_F(GroupCommitTest, AMemberThatWroteNothingBeforeItFailedCostsTheOthersNothing) {
  std::atomic<int> runs = 0;
  const auto insert = [&](Tx& tx) -> Status {
    ++runs;
    Insert(tx, std::to_string(runs));
    return {};
  };
  const auto results = RunTogether({
      insert,
      [](Tx&) -> Status { return Fail(ErrorCode::kConflict, "no"); },
      insert,
  });
  EXPECT_EQ(runs, 2) << "nobody was run again";
  EXPECT_TRUE(results[0].has_value());
  EXPECT_EQ(results[1].error().code, ErrorCode::kConflict);
  EXPECT_TRUE(results[2].has_value());
  EXPECT_EQ(Count("1"), 1);
  EXPECT_EQ(Count("2"), 1);
}

TEST_F(GroupCommitTest, ADiskThatIsFullForOneMemberLeavesNothingHalfDone) {
  std::atomic<int> runs = 0;
  const auto results = RunTogether({
      [&](Tx& tx) -> Status {
        ++runs;
        Insert(tx, "a");
        return {};
      },
      [](Tx& tx) -> Status {
        Insert(tx, "b");
        Insert(tx, "too much", 10'000'000);
        return {};
      },
      [](Tx& tx) -> Status {
        Insert(tx, "c");
        return {};
      },
  });
  EXPECT_EQ(runs, 2);  // SQLite undid the whole transaction, and each was run again alone.
  EXPECT_TRUE(results[0].has_value());
  EXPECT_EQ(results[1].error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(results[2].has_value());
  EXPECT_EQ(Count("a"), 1);
  EXPECT_EQ(Count("b"), 0);
  EXPECT_EQ(Count("c"), 1);
}

TEST_F(GroupCommitTest, ReadersSeeACommitOnceItsCallReturned) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(commit_->Run([&](Tx& tx) -> Status {
      Insert(tx, name);
      return {};
    }));
    EXPECT_EQ(Count(name), 1);
  }
}

TEST_F(GroupCommitTest, AfterDoubtAtCommitAllConnectionsAreOpenedAnew) {
  ASSERT_TRUE(commit_->Run([](Tx& tx) -> Status {
    Insert(tx, "a");
    return {};
  }));
  EXPECT_EQ(Count("a"), 1);
  Db* before = connections_->Writer().value();
  before->RunScript("CREATE TEMP TABLE of_this_connection (x)");
  connections_->Distrust();
  ASSERT_TRUE(commit_->Run([](Tx& tx) -> Status {
    Query query = tx.db.Prepare("SELECT 1 FROM temp.sqlite_schema");
    EXPECT_FALSE(query.Next());
    Insert(tx, "b");
    return {};
  }));
  EXPECT_EQ(Count("a"), 1);
  EXPECT_EQ(Count("b"), 1);
}

TEST_F(GroupCommitTest, ADiskThatIsFullAtCommitLeavesReadersAndWritersAlive) {
  ASSERT_TRUE(InsertAlone("a"));
  disk_.is_full = true;
  EXPECT_EQ(InsertAlone("b").error().code, ErrorCode::kUnknown);
  // Who asks first what became of it is a reader: nobody writes meanwhile.
  EXPECT_EQ(Count("a"), 1);
  EXPECT_EQ(Count("b"), 0);
  EXPECT_FALSE(InsertAlone("c"));
  disk_.is_full = false;
  EXPECT_TRUE(InsertAlone("c"));
  EXPECT_EQ(Count("b"), 0);
  EXPECT_EQ(Count("c"), 1);
}

TEST_F(GroupCommitTest, ALookSeesWhatWasCommittedWithoutATransaction) {
  ASSERT_TRUE(InsertAlone("a").has_value());
  std::int64_t count = 0;
  const Status looked = commit_->Look([&](Db& db) {
    EXPECT_TRUE(db.IsAutocommit());
    Query query = db.Prepare("SELECT count(*) FROM t");
    if (query.Next()) count = query.Int();
  });
  EXPECT_TRUE(looked.has_value());
  EXPECT_EQ(count, 1);
}

TEST_F(GroupCommitTest, ALookThatFailsIsToldAndHarmsNobody) {
  const Status looked = commit_->Look([](Db& db) { db.Run("SELECT nonsense FROM t"); });
  ASSERT_FALSE(looked.has_value());
  EXPECT_EQ(looked.error().code, ErrorCode::kInternal);
  EXPECT_TRUE(InsertAlone("a").has_value());
  EXPECT_EQ(Count("a"), 1);
}

}  // namespace
}  // namespace vmonce::ledger
