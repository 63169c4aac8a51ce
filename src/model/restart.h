// When a machine that its host took down is started again: protocol section 11 as pure functions.
#pragma once

#include "base/clock.h"
#include "model/vm.h"

namespace vmonce::model {

enum class RestartVerdict {
  kNotWanted,  // It runs, or is off because somebody wanted that, or its policy says so.
  kDue,
  kLater,    // The backoff after the last restart is not over.
  kGivenUp,  // It came down again after each of limits::kRestartsInARow restarts: a person looks.
};

// By the row alone: the last observation, its typed cause, and what the user wants. Whether an
// operation is about to act on the VM is not known here.
RestartVerdict JudgeRestart(const Vm& vm, Time now);

// Shown to people: JudgeRestart() is kGivenUp at any time.
bool IsRestartStuck(const Vm& vm);

// How many restarts in a row stand when the VM is found to be down at `now`: none once it ran for
// limits::kRestartSteady.
int RestartsInARow(const Vm& vm, Time now);

}  // namespace vmonce::model
