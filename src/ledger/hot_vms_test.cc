#include "ledger/hot_vms.h"

#include <gtest/gtest.h>

#include "base/system.h"

namespace vmonce::ledger {
namespace {

model::Vm VmAt(int number, std::int64_t version) {
  model::Vm vm;
  vm.id.value.bytes[15] = static_cast<std::uint8_t>(number);
  vm.version = version;
  return vm;
}

class HotVmsTest : public testing::Test {
 protected:
  void Commit(const std::vector<model::Vm>& vms) {
    for (const model::Vm& vm : vms) hot_.Wrote(vm);
    hot_.BeforeCommit();
    hot_.Committed();
  }
  // Of the committed row; 0: not known.
  std::int64_t Version(int number) const {
    const auto vm = hot_.Find(VmAt(number, 0).id);
    return vm ? vm->version : 0;
  }
  std::int64_t VersionInTransaction(int number) const {
    const auto vm = hot_.FindInTransaction(VmAt(number, 0).id);
    return vm ? vm->version : 0;
  }

  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  HotVms hot_{*threads_, 3};
};

TEST_F(HotVmsTest, ShowsAWrittenRowToItsTransactionAtOnceAndToOthersAfterTheCommit) {
  hot_.Wrote(VmAt(1, 7));
  EXPECT_EQ(VersionInTransaction(1), 7);
  EXPECT_EQ(Version(1), 0);
  hot_.BeforeCommit();
  EXPECT_EQ(Version(1), 0);
  hot_.Committed();
  EXPECT_EQ(Version(1), 7);
}

TEST_F(HotVmsTest, HidesTheOldRowWhileTheNewOneIsCommitted) {
  Commit({VmAt(1, 7), VmAt(2, 7)});
  hot_.Wrote(VmAt(1, 8));
  EXPECT_EQ(Version(1), 7);
  hot_.BeforeCommit();
  EXPECT_EQ(Version(1), 0);
  EXPECT_EQ(Version(2), 7);
  hot_.Committed();
  EXPECT_EQ(Version(1), 8);
}

TEST_F(HotVmsTest, ForgetsWhatWasUndone) {
  Commit({VmAt(1, 7)});
  hot_.Wrote(VmAt(1, 8));
  hot_.Undone();
  EXPECT_EQ(VersionInTransaction(1), 7);
  EXPECT_EQ(Version(1), 7);
}

TEST_F(HotVmsTest, KnowsNothingAfterRowsWereWrittenBesideIt) {
  Commit({VmAt(1, 7)});
  hot_.Wrote(VmAt(2, 7));
  hot_.WroteOthers();
  EXPECT_EQ(VersionInTransaction(1), 0);
  EXPECT_EQ(VersionInTransaction(2), 0);
  hot_.BeforeCommit();
  EXPECT_EQ(Version(1), 0);
  hot_.Committed();
  EXPECT_EQ(Version(1), 0);
  EXPECT_EQ(Version(2), 0);
  Commit({VmAt(2, 8)});
  EXPECT_EQ(Version(2), 8);
}

TEST_F(HotVmsTest, KnowsNothingAfterADoubtfulCommit) {
  Commit({VmAt(1, 7)});
  hot_.Wrote(VmAt(2, 7));
  hot_.BeforeCommit();
  hot_.Forget();
  EXPECT_EQ(Version(1), 0);
  EXPECT_EQ(Version(2), 0);
}

TEST_F(HotVmsTest, HoldsNoMoreThanItMay) {
  Commit({VmAt(1, 1), VmAt(2, 1), VmAt(3, 1)});
  Commit({VmAt(4, 1)});
  EXPECT_EQ(Version(1) + Version(2) + Version(3), 0);
  EXPECT_EQ(Version(4), 1);
  Commit({VmAt(5, 1), VmAt(6, 1), VmAt(7, 1), VmAt(8, 1)});
  EXPECT_EQ(Version(5) + Version(6) + Version(7) + Version(8), 0);
}

}  // namespace
}  // namespace vmonce::ledger
