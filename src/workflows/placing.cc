#include "workflows/placing.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/forward_limits.h"
#include "model/placement.h"
#include "model/rebuild_limits.h"

namespace vmonce::workflows {
namespace {

using engine::StepResult;
using model::Forward;
using model::HostId;
using model::HostPort;
using model::Vm;

HostPort PortOf(const Forward& forward) { return {forward.protocol, forward.host_port}; }

StepResult PortTaken(const HostPort& port, const HostId& host) {
  return StepResult::Unavailable(
      "host_port_taken",
      fmt::format("{} port {} is in use on host {}: ask for another, or for none in particular",
                  ToString(port.protocol), port.port, host.value));
}

// Leaves the hosts where no VM has the ports that this one asks for by number.
Status DropWherePortsAreTaken(const WorkflowParts& parts, const Vm& vm,
                              std::vector<model::Candidate>& candidates) {
  for (const Forward& forward : vm.spec.forwards) {
    if (forward.host_port == 0) continue;
    const Result<std::vector<HostId>> taken = parts.ledger.HostsUsingPort(PortOf(forward));
    if (!taken) return std::unexpected(taken.error());
    std::erase_if(candidates, [&](const auto& one) {
      return std::ranges::find(*taken, one.host.id) != taken->end();
    });
  }
  return {};
}

// Those that it has or asked for, and of each protocol the first ones that it might get.
std::vector<HostPort> PortsToProbe(const Vm& vm, const model::PortRange& range) {
  std::vector<HostPort> ports;
  for (const Forward& forward : vm.forwards) ports.push_back(PortOf(forward));
  for (const Forward& forward : vm.spec.forwards) {
    if (forward.host_port != 0) {
      ports.push_back(PortOf(forward));
      continue;
    }
    const int turns = std::min(range.Size(), model::limits::kForwardProbes);
    for (int turn = 0; turn < turns; ++turn) {
      ports.push_back({forward.protocol, model::PortAt(range, vm.id, turn)});
    }
  }
  std::ranges::sort(ports);
  const auto twice = std::ranges::unique(ports);
  ports.erase(twice.begin(), twice.end());
  return ports;
}

bool IsAnyOf(const std::vector<HostPort>& ports, const std::vector<Forward>& forwards) {
  return std::ranges::any_of(forwards, [&](const Forward& forward) {
    return std::ranges::find(ports, PortOf(forward)) != ports.end();
  });
}

// The VM's ports that nobody asked for by number.
std::vector<HostPort> OwnChoice(const Vm& vm) {
  std::vector<HostPort> ports;
  for (std::size_t i = 0; i < vm.forwards.size() && i < vm.spec.forwards.size(); ++i) {
    if (vm.spec.forwards[i].host_port == 0) ports.push_back(PortOf(vm.forwards[i]));
  }
  return ports;
}

struct Suspects {
  std::vector<HostPort> ports;
  bool is_certain = false;  // They were seen to be in use.
};

// Which of the VM's own ports another program has. Where that cannot be told, all that may be
// changed are suspected.
Suspects FindSuspects(const WorkflowParts& parts, const Vm& vm) {
  std::vector<HostPort> own;
  for (const Forward& forward : vm.forwards) own.push_back(PortOf(forward));
  ports::Hypervisor* const host = parts.fleet.Find(*vm.host);
  if (host == nullptr) return {};
  const auto in_use = host->PortsInUse(vm.forwards.front().host_address, own);
  if (in_use) return {*in_use, true};
  if (in_use.error().code != ErrorCode::kRefused) return {};
  return {OwnChoice(vm), false};
}

}  // namespace

std::optional<StepResult> ChooseHost(const WorkflowParts& parts, const Vm& vm,
                                     std::optional<HostId>& host) {
  // The machine may be where nobody has looked yet.
  const LedgerAge age = parts.fleet.Age();
  if (age == LedgerAge::kUntold) return StepResult::Again(parts.settings.observe_every);
  if (age != LedgerAge::kCurrent) return StepResult::Again(model::limits::kUnreadWait);
  Result<std::vector<model::Candidate>> candidates = parts.fleet.Candidates();
  if (!candidates) return StepResult::Unavailable("ledger_unavailable", candidates.error().detail);
  std::erase_if(*candidates,
                [&](const auto& one) { return !parts.fleet.Offers(one.host.id, vm.spec); });
  const bool is_offered = !candidates->empty();
  if (const Status dropped = DropWherePortsAreTaken(parts, vm, *candidates); !dropped) {
    return StepResult::Unavailable("ledger_unavailable", dropped.error().detail);
  }
  host = model::PickHost(*candidates, Demand(vm.spec));
  if (host) return std::nullopt;
  if (!is_offered) {
    return StepResult::Unavailable(
        "network_not_offered",
        parts.fleet.WhyNotOffered(vm.spec).value_or("no host offers what it asks for"));
  }
  if (candidates->empty()) {
    return StepResult::Unavailable("host_port_taken",
                                   "a host_port that was asked for is another VM's on every host");
  }
  const bool is_any_reachable = std::ranges::any_of(*candidates, &model::Candidate::is_reachable);
  return is_any_reachable
             ? StepResult::Unavailable("no_capacity", "no reachable host has room for this VM")
             : StepResult::Unavailable("hypervisor_unavailable", "no host can be reached");
}

std::optional<StepResult> PlanPorts(const WorkflowParts& parts, const Vm& vm,
                                    ports::VmChange& change) {
  if (vm.spec.forwards.empty()) return std::nullopt;
  const HostId host = change.place_on ? *change.place_on : *vm.host;
  Result<ports::PortPlan> plan = parts.fleet.PortsOf(host);
  if (!plan) return StepResult::From(plan.error());
  ports::Hypervisor* const hypervisor = parts.fleet.Find(host);
  // What cannot be seen is found out by the start.
  if (const auto in_use = hypervisor->PortsInUse(plan->address, PortsToProbe(vm, plan->range))) {
    plan->avoid = *in_use;
  } else if (in_use.error().code == ErrorCode::kRefused && !vm.forwards.empty()) {
    // A start has failed there, and which port was why nobody can tell.
    plan->avoid = OwnChoice(vm);
  }
  for (const Forward& forward : vm.spec.forwards) {
    if (forward.host_port == 0) continue;
    if (IsAnyOf(plan->avoid, {forward})) return PortTaken(PortOf(forward), host);
  }
  change.reserve_ports = *std::move(plan);
  return std::nullopt;
}

std::optional<StepResult> AfterFailedStart(const WorkflowParts& parts,
                                           const engine::StepContext& context) {
  const Result<Vm> vm = LoadVm(parts, context);
  if (!vm || !vm->host || vm->forwards.empty()) return std::nullopt;
  // A start that may still take effect would listen on the ports that it was defined with.
  if (!IsSettled(parts, context)) return std::nullopt;
  if (context.now < context.item.unsettled_until) {
    return StepResult::Again(context.item.unsettled_until - context.now, {},
                             "an earlier call may still take effect");
  }
  const auto [suspects, is_certain] = FindSuspects(parts, *vm);
  if (suspects.empty()) return std::nullopt;
  for (const Forward& asked : vm->spec.forwards) {
    if (asked.host_port != 0 && IsAnyOf(suspects, {asked})) {
      return PortTaken(PortOf(asked), *vm->host);
    }
  }
  if (vm->forward_moves >= model::limits::kForwardMoves) {
    if (!is_certain) return std::nullopt;
    return PortTaken(suspects.front(), *vm->host);
  }
  StepResult back;
  back.kind = StepResult::Kind::kRewind;
  back.detail = fmt::format("{} port {} {} another program's on that host: others are chosen",
                            ToString(suspects.front().protocol), suspects.front().port,
                            is_certain ? "is" : "may be");
  return back;
}

std::optional<StepResult> WhyPortsTaken(const WorkflowParts& parts, const Vm& vm) {
  if (!vm.host || vm.forwards.empty()) return std::nullopt;
  const auto [suspects, is_certain] = FindSuspects(parts, vm);
  if (!is_certain || suspects.empty()) return std::nullopt;
  return StepResult::Unavailable(
      "host_port_taken",
      fmt::format("{} port {} of host {} leads to this VM, and another program has it: end that",
                  ToString(suspects.front().protocol), suspects.front().port, vm.host->value));
}

}  // namespace vmonce::workflows
