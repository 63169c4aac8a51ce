#include "model/restart.h"

#include <gtest/gtest.h>

#include "model/restart_limits.h"

namespace vmonce::model {
namespace {

const Time kNow = FromUnixMs(1'700'000'000'000);

Vm TakenDown() {
  Vm vm;
  vm.state = VmState::kReady;
  vm.observed = Observed::kStopped;
  vm.stopped_by = StopCause::kHost;
  return vm;
}

TEST(Restart, IsDueAtOnceForAMachineThatItsHostTookDown) {
  EXPECT_EQ(JudgeRestart(TakenDown(), kNow), RestartVerdict::kDue);
}

TEST(Restart, IsNotWantedWhereSomebodyOrTheGuestStoppedIt) {
  for (const StopCause cause : {StopCause::kNone, StopCause::kGuest, StopCause::kPerson}) {
    Vm vm = TakenDown();
    vm.stopped_by = cause;
    EXPECT_EQ(JudgeRestart(vm, kNow), RestartVerdict::kNotWanted) << ToString(cause);
  }
}

TEST(Restart, IsNotWantedUnlessTheMachineIsReadyAndWantedAndSeenOff) {
  std::vector<Vm> others(5, TakenDown());
  others[0].desired = Desired::kStopped;
  others[1].restart = RestartPolicy::kNever;
  others[2].state = VmState::kMissing;
  others[3].delete_operation = OperationId{};
  others[4].observed = Observed::kRunning;
  for (const Vm& vm : others) EXPECT_EQ(JudgeRestart(vm, kNow), RestartVerdict::kNotWanted);
}

TEST(Restart, WaitsTwiceAsLongAfterEachAndThenGivesUp) {
  Vm vm = TakenDown();
  vm.restarted = kNow;
  Milliseconds wait = limits::kRestartBackoffBase;
  for (vm.restarts = 1; vm.restarts < limits::kRestartsInARow; ++vm.restarts) {
    EXPECT_EQ(JudgeRestart(vm, kNow + wait - Milliseconds(1)), RestartVerdict::kLater);
    EXPECT_EQ(JudgeRestart(vm, kNow + wait), RestartVerdict::kDue) << vm.restarts;
    EXPECT_FALSE(IsRestartStuck(vm));
    wait = std::min(2 * wait, limits::kRestartBackoffCap);
  }
  EXPECT_EQ(JudgeRestart(vm, kNow + std::chrono::hours(1)), RestartVerdict::kGivenUp);
  EXPECT_TRUE(IsRestartStuck(vm));
  vm.observed = Observed::kRunning;
  EXPECT_FALSE(IsRestartStuck(vm)) << "it runs";
}

TEST(Restart, CountsAnewOnceTheMachineRanSteadily) {
  Vm vm = TakenDown();
  EXPECT_EQ(RestartsInARow(vm, kNow), 0);
  vm.restarts = 3;
  vm.restarted = kNow;
  EXPECT_EQ(RestartsInARow(vm, kNow + limits::kRestartSteady - Milliseconds(1)), 3);
  EXPECT_EQ(RestartsInARow(vm, kNow + limits::kRestartSteady), 0);
}

// Otherwise a machine that never ran would look steady by waiting.
TEST(Restart, NeverWaitsAsLongAsASteadyRunTakes) {
  EXPECT_LT(limits::kRestartBackoffCap, limits::kRestartSteady);
}

}  // namespace
}  // namespace vmonce::model
