// What only the SQLite adapter promises.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "ledger/contract_world.h"
#include "ledger/migrate.h"

namespace vmonce::ledger {
namespace {

class Sqlite : public testing::Test {
 protected:
  Result<std::unique_ptr<SqliteLedger>> Open(const std::string& file, int max_pages = 0) {
    SqliteLedgerOptions options;
    options.path = file;
    options.page_cache_kib = 4096;
    options.max_pages = max_pages;
    return SqliteLedger::Open(options, world.clock, *world.random, *world.threads, *world.logger);
  }
  void RunSql(const std::string& file, const std::string& sql) {
    auto db = Db::Open(file, OpenMode::kReadWrite);
    ASSERT_TRUE(db.has_value());
    (*db)->RunScript(sql);
    const auto error = (*db)->TakeError();
    ASSERT_FALSE(error.has_value()) << error->detail;
  }

  World world{kSqliteFile};
  const std::string path = world.dir.File("ledger.db");
};

TEST_F(Sqlite, KeepsItsIdAndItsRowsWhenItIsOpenedAgain) {
  const auto id = world.ledger->Id();
  const auto vm = world.NewVm("key-1", "a");
  world.ledger.reset();
  world.ledger = OpenSqlite(world, path);
  EXPECT_EQ(world.ledger->Id(), id);
  EXPECT_EQ(world.Vm(vm.id).name, "a");
  EXPECT_EQ(world.Operation(world.NewVm("key-2", "b").operation).sequence, 2);
}

TEST_F(Sqlite, RefusesASecondProcessWithAClearText) {
  const auto second = Open(path);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().detail.find("already served"), std::string::npos);
  world.ledger.reset();
  EXPECT_TRUE(Open(path).has_value());
}

TEST_F(Sqlite, RefusesAFileOfANewerVersionAndLeavesItAlone) {
  world.ledger.reset();
  RunSql(path, "PRAGMA user_version = 99");
  const auto newer = Open(path);
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, ErrorCode::kConflict);
  EXPECT_NE(newer.error().detail.find("newer version"), std::string::npos);
  EXPECT_NE(newer.error().detail.find("99"), std::string::npos);
}

TEST_F(Sqlite, RefusesAFileThatIsNoLedger) {
  const std::string database = world.dir.File("other.db");
  RunSql(database, "CREATE TABLE theirs (x)");
  EXPECT_EQ(Open(database).error().code, ErrorCode::kConflict);
  RunSql(database, "INSERT INTO theirs VALUES (1)");  // It still is theirs.
  EXPECT_EQ(Open("/proc/version").error().code, ErrorCode::kUnavailable);
}

TEST_F(Sqlite, CopiesAnOlderFileBeforeItChangesIt) {
  world.NewVm("key-1", "a");
  world.ledger.reset();
  std::vector<Migration> migrations(EmbeddedMigrations().begin(), EmbeddedMigrations().end());
  const int next = migrations.back().number + 1;
  migrations.push_back({next, "added", "CREATE TABLE added (x) STRICT"});
  migrations.back().sql = "CREATE TABLE added (x INTEGER) STRICT;";
  {
    auto db = Db::Open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(db.has_value());
    const Status done = Migrate(**db, path, migrations, *world.random, *world.logger);
    ASSERT_TRUE(done.has_value()) << done.error().detail;
    EXPECT_TRUE((*db)->Run("INSERT INTO added VALUES (1)"));
  }
  const std::string copy = fmt::format("{}.before-{:04}", path, next);
  EXPECT_EQ(Open(path).error().code, ErrorCode::kConflict);  // It is newer now.
  auto before = Open(copy);
  ASSERT_TRUE(before.has_value()) << before.error().detail;
  EXPECT_TRUE((*before)->FindByKey(world.project, Sha256("key-1"))->has_value());
}

TEST_F(Sqlite, UndoesAMigrationThatFails) {
  world.ledger.reset();
  std::vector<Migration> migrations(EmbeddedMigrations().begin(), EmbeddedMigrations().end());
  migrations.push_back({migrations.back().number + 1, "broken", "CREATE TABLE b (x); NOT SQL;"});
  {
    auto db = Db::Open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(db.has_value());
    EXPECT_FALSE(Migrate(**db, path, migrations, *world.random, *world.logger).has_value());
  }
  auto ledger = Open(path);
  EXPECT_TRUE(ledger.has_value()) << ledger.error().detail;
}

TEST_F(Sqlite, ALeaseColumnThatIsNeitherALeaseNorUnleasedIsLocked) {
  world.NewVm("key-1", "a");
  world.ledger.reset();
  RunSql(path, "UPDATE operations SET lease_owner = 'held by an operator'");
  world.ledger = OpenSqlite(world, path);
  world.clock.Advance(std::chrono::hours(24));
  EXPECT_TRUE(world.Take().empty());
  EXPECT_FALSE(world.ledger->NextDue()->has_value());
  world.ledger.reset();
  RunSql(path, "UPDATE operations SET lease_owner = 'unleased'");
  world.ledger = OpenSqlite(world, path);
  EXPECT_EQ(world.Take().size(), 1u);
}

TEST_F(Sqlite, ARowThatCannotBeReadIsAnErrorAndNotAnAnswer) {
  const auto vm = world.NewVm("key-1", "a");
  world.ledger.reset();
  RunSql(path, "UPDATE vms SET spec = '{'");
  world.ledger = OpenSqlite(world, path);
  EXPECT_EQ(world.ledger->GetVm(vm.id).error().code, ErrorCode::kInternal);
  EXPECT_EQ(world.Accept(world.Create("key-1", {"a"})).error().code, ErrorCode::kInternal);
  EXPECT_TRUE(world.ledger->Ping().has_value());
}

// A name twice in one request is a bug of the caller, which the schema catches.
TEST_F(Sqlite, AMemberThatBreaksTheSchemaDoesNotTakeItsBatchAlong) {
  const std::vector<ports::Submission> batch = {world.Create("key-1", {"a"}),
                                                world.Create("key-2", {"b", "b"}),
                                                world.Create("key-3", {"c"})};
  const auto outcomes = world.ledger->Accept(batch);
  EXPECT_NE(As<ports::Accepted>(outcomes[0]), nullptr);
  EXPECT_EQ(outcomes[1].error().code, ErrorCode::kInternal);
  EXPECT_NE(As<ports::Accepted>(outcomes[2]), nullptr);
  EXPECT_EQ(world.Usage().vms, 2);
}

TEST_F(Sqlite, AFullDiskIsUnavailableAndLeavesNothingHalfDone) {
  world.ledger = std::move(*Open(world.dir.File("small.db"), 60));
  std::vector<ports::Submission> batch = {
      world.Create("key-1", {"a"}), world.Create("key-2", {"b"}), world.Create("key-3", {"c"})};
  batch[1].operation.intent = std::string(1 << 20, 'x');
  const auto outcomes = world.ledger->Accept(batch);
  EXPECT_NE(As<ports::Accepted>(outcomes[0]), nullptr);
  EXPECT_EQ(outcomes[1].error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(outcomes[2].error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(world.Usage().vms, 1);
  EXPECT_FALSE(world.ledger->FindByKey(world.project, Sha256("key-2"))->has_value());
  EXPECT_NE(As<ports::Accepted>(world.Accept(batch[2])), nullptr);
}

// report 136: what COMMIT did is unknown when it fails, and the body is not run again.
TEST_F(Sqlite, AnErrorAtCommitIsUnknownAndTheNextReadTellsWhatStays) {
  world.NewVm("key-0", "first");
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto log_bytes = std::filesystem::file_size(path + "-wal");
  const rlimit tight{log_bytes + 4096, before.rlim_max};
  auto submission = world.Create("key-1", {"a"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto outcome = world.Accept(submission);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kUnknown) << outcome.error().detail;
  const auto again = world.Accept(submission);
  ASSERT_TRUE(again.has_value()) << again.error().detail;
  EXPECT_TRUE(As<ports::Accepted>(again) || As<ports::Known>(again));
  EXPECT_EQ(world.Usage().vms, 2);
  EXPECT_TRUE(world.ledger->FindByKey(world.project, Sha256("key-1"))->has_value());
}

TEST_F(Sqlite, TombstonesAreSmallerThanTwoHundredBytes) {
  constexpr int kRecords = 100;
  std::vector<ports::Submission> batch;
  for (int i = 0; i < kRecords; ++i) {
    batch.push_back(world.Create(fmt::format("key-{}", i), {fmt::format("vm-{}", i)}));
  }
  world.ledger->Accept(batch);
  world.MakeFailed(true);
  const model::RetentionPolicy policy;
  world.clock.Advance(policy.retention);
  EXPECT_EQ(world.ledger->Sweep(policy, kRecords)->expired, kRecords);
  world.ledger.reset();
  auto db = Db::Open(path, OpenMode::kReadWrite);
  Query query = (*db)->Prepare("SELECT sum(payload) FROM dbstat WHERE name GLOB 'tombstone*'");
  ASSERT_TRUE(query.Next()) << (*db)->TakeError()->detail;
  EXPECT_LT(query.Int(), 200 * kRecords);
}

TEST_F(Sqlite, ManyThreadsReadAndWriteAtOnce) {
  std::atomic<int> accepted = 0;
  {
    std::vector<std::vector<ports::Submission>> work(8);
    std::vector<std::unique_ptr<Thread>> callers;
    for (int i = 0; i < 400; ++i) {
      work[i % 8].push_back(world.Create(fmt::format("key-{}", i), {fmt::format("vm-{}", i)}));
    }
    for (const auto& mine : work) {
      callers.push_back(world.threads->Spawn("caller", [&](std::stop_token) {
        for (const ports::Submission& submission : mine) {
          const auto outcome = world.Accept(submission);
          ASSERT_TRUE(outcome.has_value()) << outcome.error().detail;
          if (As<ports::Accepted>(outcome)) ++accepted;
          const auto found = world.ledger->FindByKey(world.project, *submission.operation.key_hash);
          EXPECT_TRUE(found && *found);
        }
      }));
    }
  }
  EXPECT_EQ(accepted, 400);
  EXPECT_EQ(world.Usage().vms, 400);
}

// Accepts without end and tells each acceptance once it is acknowledged.
[[noreturn]] void AcceptForEver(const std::string& path, int round, int report) {
  World child{Adapter{"none", [](World&) { return std::unique_ptr<ports::Ledger>(); }}};
  child.ledger = OpenSqlite(child, path);
  for (int i = 0;; ++i) {
    std::vector<ports::Submission> batch;
    for (int j = 0; j < 3; ++j) {
      const auto name = fmt::format("k-{}-{}-{}", round, i, j);
      batch.push_back(child.Create(name, {name}));
    }
    for (const auto& outcome : child.ledger->Accept(batch)) {
      if (!As<ports::Accepted>(outcome)) _exit(1);
    }
    if (write(report, &i, sizeof i) != sizeof i) _exit(2);
  }
}

TEST_F(Sqlite, LosesNothingAcknowledgedToAKill) {
  world.ledger.reset();
  for (int round = 0; round < 3; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) AcceptForEver(path, round, ends[1]);
    close(ends[1]);
    int last = -1;
    int told = 0;
    while (told < 40 + 13 * round && read(ends[0], &last, sizeof last) == sizeof last) ++told;
    kill(child, SIGKILL);
    while (read(ends[0], &last, sizeof last) == sizeof last) ++told;
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;

    world.ledger = OpenSqlite(world, path);
    ASSERT_GE(last, 39);
    for (int i = 0; i <= last; ++i) {
      for (int j = 0; j < 3; ++j) {
        const auto key = Sha256(fmt::format("k-{}-{}-{}", round, i, j));
        ASSERT_TRUE(world.ledger->FindByKey(world.project, key)->has_value()) << i;
      }
    }
    const auto totals = world.ledger->Totals();
    EXPECT_EQ(totals->unfinished, world.Usage().vms);
    EXPECT_EQ(totals->unfinished % 3, 0);  // A batch is there or not.
    world.ledger.reset();
  }
}

TEST(SqliteInMemory, BecomesACopyOfAnotherAndForgetsWhatItHeld) {
  World one(kSqliteMemory);
  World two(kSqliteMemory);
  auto& copy = static_cast<SqliteLedger&>(*two.ledger);
  const model::Vm kept = one.NewVm("key-1", "a");
  const model::Vm forgotten = two.NewVm("key-2", "b");
  ASSERT_TRUE(copy.CopyFrom(static_cast<SqliteLedger&>(*one.ledger)).has_value());

  EXPECT_EQ(copy.Id(), one.ledger->Id());
  EXPECT_EQ(two.Vm(kept.id), one.Vm(kept.id));
  EXPECT_EQ(copy.GetVm(forgotten.id).value(), std::nullopt);
  EXPECT_EQ(two.Usage(), one.Usage());
  // And both go on by themselves.
  EXPECT_EQ(two.Operation(two.NewVm("key-2", "b").operation).sequence, 2);
  EXPECT_EQ(one.Usage().vms, 1);
}

}  // namespace
}  // namespace vmonce::ledger
