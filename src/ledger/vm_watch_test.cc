#include "ledger/vm_watch.h"

#include <gtest/gtest.h>

namespace vmonce::ledger {
namespace {

model::VmId IdOf(std::uint8_t number) {
  model::VmId id;
  id.value.bytes[15] = number;
  return id;
}

const model::VmId kOne = IdOf(1);
const model::VmId kTwo = IdOf(2);

TEST(VmWatch, LetsWhatWasReadStandUntilItsVmIsWritten) {
  VmWatch watch;
  const ports::Moment read = watch.Now();
  EXPECT_TRUE(watch.IsUnchanged(kOne, read));
  watch.Begins(kOne);
  EXPECT_FALSE(watch.IsUnchanged(kOne, read)) << "it may show at any time from here on";
  watch.Ends();
  EXPECT_FALSE(watch.IsUnchanged(kOne, read));
  EXPECT_TRUE(watch.IsUnchanged(kTwo, read));
  EXPECT_TRUE(watch.IsUnchanged(kOne, watch.Now()));
}

TEST(VmWatch, LetsNothingStandThatWasReadDuringItsCommit) {
  VmWatch watch;
  watch.Begins(kOne);
  const ports::Moment during = watch.Now();
  EXPECT_FALSE(watch.IsUnchanged(kOne, during));
  watch.Ends();
  EXPECT_FALSE(watch.IsUnchanged(kOne, during)) << "the old row may have been read";
  EXPECT_TRUE(watch.IsUnchanged(kTwo, during));
}

TEST(VmWatch, LetsNothingStandAfterAWriteThatMayBeOfAnyVm) {
  VmWatch watch;
  const ports::Moment read = watch.Now();
  watch.BeginsWithAll();
  EXPECT_FALSE(watch.IsUnchanged(kOne, read));
  watch.Ends();
  EXPECT_FALSE(watch.IsUnchanged(kTwo, read));
  EXPECT_TRUE(watch.IsUnchanged(kTwo, watch.Now()));
}

}  // namespace
}  // namespace vmonce::ledger
