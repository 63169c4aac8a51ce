#include "model/vm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/words.h"

namespace vmonce::model {
namespace {

constexpr std::array<std::string_view, 7> kVmStates = {"pending", "creating", "ready",  "failed",
                                                       "missing", "deleting", "deleted"};
constexpr std::array<std::string_view, 2> kDesired = {"running", "stopped"};
constexpr std::array<std::string_view, 5> kObserved = {"unknown", "running", "stopped", "paused",
                                                       "absent"};

constexpr std::array<std::string_view, 4> kStopCauses = {"none", "guest", "person", "host"};
constexpr std::array<std::string_view, 2> kRestartPolicies = {"host-failure", "never"};

using enum VmState;

constexpr std::pair<VmState, VmState> kTransitions[] = {
    {kPending, kCreating},  {kCreating, kReady},   {kCreating, kFailed},
    {kFailed, kCreating},  // A new attempt.
    {kReady, kMissing},     {kMissing, kReady},    {kPending, kDeleting},
    {kCreating, kDeleting}, {kReady, kDeleting},   {kFailed, kDeleting},
    {kMissing, kDeleting},  {kDeleting, kDeleted},
};

}  // namespace

std::string_view ToString(VmState state) { return WordOf(kVmStates, state); }
std::string_view ToString(Desired desired) { return WordOf(kDesired, desired); }
std::string_view ToString(Observed observed) { return WordOf(kObserved, observed); }

std::string_view ToString(StopCause cause) { return WordOf(kStopCauses, cause); }
std::string_view ToString(RestartPolicy policy) { return WordOf(kRestartPolicies, policy); }

std::optional<VmState> ParseVmState(std::string_view text) {
  return EnumOf<VmState>(kVmStates, text);
}

std::optional<Desired> ParseDesired(std::string_view text) {
  return EnumOf<Desired>(kDesired, text);
}

std::optional<Observed> ParseObserved(std::string_view text) {
  return EnumOf<Observed>(kObserved, text);
}

std::optional<StopCause> ParseStopCause(std::string_view text) {
  return EnumOf<StopCause>(kStopCauses, text);
}

std::optional<RestartPolicy> ParseRestartPolicy(std::string_view text) {
  return EnumOf<RestartPolicy>(kRestartPolicies, text);
}

bool IsLegal(VmState from, VmState to) {
  return from == to ||
         std::ranges::find(kTransitions, std::pair(from, to)) != std::end(kTransitions);
}

Resources Demand(const VmSpec& spec) {
  return {.vms = 1, .cpus = spec.cpus, .memory_mib = spec.memory_mib, .disk_gib = spec.disk_gib};
}

}  // namespace vmonce::model
