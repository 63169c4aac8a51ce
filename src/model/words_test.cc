#include "model/words.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "model/host.h"
#include "model/image.h"
#include "model/operation.h"
#include "model/vm.h"

namespace vmonce::model {
namespace {

template <typename Enum>
struct Spelling {
  Enum value;
  std::string_view word;
};

// Both ways for every value, and nothing but the exact word is read.
template <typename Enum>
void ExpectWords(const std::function<std::optional<Enum>(std::string_view)>& parse,
                 const std::vector<Spelling<Enum>>& spellings) {
  for (const auto& [value, word] : spellings) {
    EXPECT_EQ(ToString(value), word);
    EXPECT_EQ(parse(word), value) << word;
    EXPECT_EQ(parse(std::string(word) + " "), std::nullopt) << word;
    EXPECT_EQ(parse(word.substr(1)), std::nullopt) << word;
    std::string upper(word);
    upper[0] = static_cast<char>(upper[0] - 'a' + 'A');
    EXPECT_EQ(parse(upper), std::nullopt) << word;
  }
  EXPECT_EQ(parse(""), std::nullopt);
  // The word after the last value of the enum would be a bug in the table or in the caller.
  EXPECT_DEATH(ToString(static_cast<Enum>(spellings.size())), "CHECK|index");
}

TEST(Words, SpellStatesOfMachines) {
  ExpectWords<VmState>(ParseVmState, {{VmState::kPending, "pending"},
                                      {VmState::kCreating, "creating"},
                                      {VmState::kReady, "ready"},
                                      {VmState::kFailed, "failed"},
                                      {VmState::kMissing, "missing"},
                                      {VmState::kDeleting, "deleting"},
                                      {VmState::kDeleted, "deleted"}});
  ExpectWords<Desired>(ParseDesired,
                       {{Desired::kRunning, "running"}, {Desired::kStopped, "stopped"}});
  ExpectWords<StopCause>(ParseStopCause, {{StopCause::kNone, "none"},
                                          {StopCause::kGuest, "guest"},
                                          {StopCause::kPerson, "person"},
                                          {StopCause::kHost, "host"}});
  ExpectWords<RestartPolicy>(ParseRestartPolicy, {{RestartPolicy::kHostFailure, "host-failure"},
                                                  {RestartPolicy::kNever, "never"}});
  ExpectWords<Observed>(ParseObserved, {{Observed::kUnknown, "unknown"},
                                        {Observed::kRunning, "running"},
                                        {Observed::kStopped, "stopped"},
                                        {Observed::kPaused, "paused"},
                                        {Observed::kAbsent, "absent"}});
}

TEST(Words, SpellOperations) {
  ExpectWords<OperationKind>(ParseOperationKind, {{OperationKind::kCreate, "create"},
                                                  {OperationKind::kDelete, "delete"},
                                                  {OperationKind::kStart, "start"},
                                                  {OperationKind::kStop, "stop"},
                                                  {OperationKind::kReboot, "reboot"},
                                                  {OperationKind::kUpdate, "update"}});
  ExpectWords<OperationState>(ParseOperationState, {{OperationState::kAccepted, "accepted"},
                                                    {OperationState::kRunning, "running"},
                                                    {OperationState::kVerifying, "verifying"},
                                                    {OperationState::kSucceeded, "succeeded"},
                                                    {OperationState::kFailed, "failed"},
                                                    {OperationState::kCancelled, "cancelled"}});
  ExpectWords<ItemPhase>(ParseItemPhase, {{ItemPhase::kForward, "forward"},
                                          {ItemPhase::kUndoing, "undoing"},
                                          {ItemPhase::kDone, "done"},
                                          {ItemPhase::kFailed, "failed"},
                                          {ItemPhase::kCancelled, "cancelled"}});
}

TEST(Words, SpellHostsAndImages) {
  ExpectWords<HostState>(ParseHostState, {{HostState::kActive, "active"},
                                          {HostState::kDraining, "draining"},
                                          {HostState::kDead, "dead"}});
  ExpectWords<ImageKind>(ParseImageKind,
                         {{ImageKind::kDisk, "disk"}, {ImageKind::kKernel, "kernel"}});
}

}  // namespace
}  // namespace vmonce::model
