#include "model/operation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/words.h"

namespace vmonce::model {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"create", "delete", "start",
                                                    "stop",   "reboot", "update"};
constexpr std::array<std::string_view, 6> kStates = {"accepted",  "running", "verifying",
                                                     "succeeded", "failed",  "cancelled"};
constexpr std::array<std::string_view, 5> kPhases = {"forward", "undoing", "done", "failed",
                                                     "cancelled"};

using enum OperationState;

constexpr std::pair<OperationState, OperationState> kTransitions[] = {
    {kAccepted, kRunning},
    // A worker's first record may already say how its first effect went.
    {kAccepted, kVerifying},
    {kAccepted, kSucceeded},
    {kAccepted, kFailed},
    {kAccepted, kCancelled},
    {kRunning, kVerifying},
    {kRunning, kSucceeded},
    {kRunning, kFailed},
    {kRunning, kCancelled},
    {kVerifying, kRunning},
    {kVerifying, kSucceeded},
    {kVerifying, kFailed},
    {kVerifying, kCancelled},
    // A new attempt.
    {kFailed, kAccepted},
};

}  // namespace

std::string_view ToString(OperationKind kind) { return WordOf(kKinds, kind); }
std::string_view ToString(OperationState state) { return WordOf(kStates, state); }
std::string_view ToString(ItemPhase phase) { return WordOf(kPhases, phase); }

std::optional<OperationKind> ParseOperationKind(std::string_view text) {
  return EnumOf<OperationKind>(kKinds, text);
}

std::optional<OperationState> ParseOperationState(std::string_view text) {
  return EnumOf<OperationState>(kStates, text);
}

std::optional<ItemPhase> ParseItemPhase(std::string_view text) {
  return EnumOf<ItemPhase>(kPhases, text);
}

bool IsFinished(OperationState state) {
  switch (state) {
    case kAccepted:
    case kRunning:
    case kVerifying: return false;
    case kSucceeded:
    case kFailed:
    case kCancelled: return true;
  }
  CHECK_MSG(false, "not an operation state");
}

bool IsLegal(OperationState from, OperationState to) {
  if (from == to) return !IsFinished(from);
  return std::ranges::find(kTransitions, std::pair(from, to)) != std::end(kTransitions);
}

}  // namespace vmonce::model
