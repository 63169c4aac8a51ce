#include "model/restart.h"

#include <algorithm>

#include "model/restart_limits.h"

namespace vmonce::model {
namespace {

bool IsRestartWanted(const Vm& vm) {
  return vm.state == VmState::kReady && !vm.delete_operation && vm.desired == Desired::kRunning &&
         vm.restart == RestartPolicy::kHostFailure && vm.observed == Observed::kStopped &&
         vm.stopped_by == StopCause::kHost;
}

Milliseconds BackoffAfter(int restarts) {
  Milliseconds wait = limits::kRestartBackoffBase;
  for (int i = 1; i < restarts && wait < limits::kRestartBackoffCap; ++i) wait *= 2;
  return std::min(wait, limits::kRestartBackoffCap);
}

}  // namespace

RestartVerdict JudgeRestart(const Vm& vm, Time now) {
  if (!IsRestartWanted(vm)) return RestartVerdict::kNotWanted;
  if (vm.restarts >= limits::kRestartsInARow) return RestartVerdict::kGivenUp;
  const bool is_waiting =
      vm.restarts > 0 && vm.restarted && now < *vm.restarted + BackoffAfter(vm.restarts);
  return is_waiting ? RestartVerdict::kLater : RestartVerdict::kDue;
}

bool IsRestartStuck(const Vm& vm) {
  return IsRestartWanted(vm) && vm.restarts >= limits::kRestartsInARow;
}

int RestartsInARow(const Vm& vm, Time now) {
  const bool ran_steadily = vm.restarted && now - *vm.restarted >= limits::kRestartSteady;
  return ran_steadily ? 0 : vm.restarts;
}

}  // namespace vmonce::model
