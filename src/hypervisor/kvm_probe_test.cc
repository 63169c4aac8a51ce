#include "hypervisor/kvm_probe.h"

#include <gtest/gtest.h>

#include "base/system.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

TEST(KvmProbe, EndsInTimeAndSaysWhy) {
  const auto clock = NewSystemClock();
  const Instant began = clock->Monotonic();
  const KvmProbe probe = ProbeKvm(model::limits::kKvmProbe);
  // A moment for the kill and the reaping, on a busy machine.
  EXPECT_LT(clock->Monotonic() - began, model::limits::kKvmProbe + std::chrono::seconds(2));
  EXPECT_EQ(probe.is_usable, probe.cause.empty()) << probe.cause;
}

TEST(KvmProbe, GivesUpAtOnceWithoutTime) {
  const KvmProbe probe = ProbeKvm(Milliseconds(0));
  EXPECT_FALSE(probe.is_usable);
  EXPECT_FALSE(probe.cause.empty());
}

TEST(Accelerator, HasThreeWords) {
  EXPECT_EQ(ParseAccelerator("auto"), Accelerator::kAuto);
  EXPECT_EQ(ParseAccelerator("kvm"), Accelerator::kKvm);
  EXPECT_EQ(ParseAccelerator("tcg"), Accelerator::kTcg);
  EXPECT_FALSE(ParseAccelerator("KVM"));
}

}  // namespace
}  // namespace vmonce::hypervisor
