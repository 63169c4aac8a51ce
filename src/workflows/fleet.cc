#include "workflows/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/label.h"
#include "model/limits.h"
#include "model/network.h"

namespace vmonce::workflows {
namespace {

model::Resources UsableCapacity(const model::Resources& machine) {
  return {
      .vms = model::limits::kVmsPerHost,
      .cpus = machine.cpus * model::limits::kCpuOvercommit,
      .memory_mib = machine.memory_mib * model::limits::kMemoryPercent / 100,
      .disk_gib = machine.disk_gib,
  };
}

model::Resources Planned(const CapacityPlan& plan, const model::Resources& told) {
  return {
      .vms = plan.vms.value_or(told.vms),
      .cpus = plan.cpus.value_or(told.cpus),
      .memory_mib = plan.memory_mib.value_or(told.memory_mib),
      .disk_gib = plan.disk_gib.value_or(told.disk_gib),
  };
}

bool HasNetwork(const HostPlan& plan, const std::string& network) {
  return network == model::kUserNetwork ||
         std::ranges::find(plan.networks, network) != plan.networks.end();
}

bool HasPorts(const HostPlan& plan, const std::vector<model::Forward>& forwards) {
  return std::ranges::all_of(forwards, [&](const model::Forward& forward) {
    return forward.host_port == 0 || plan.forward_ports.Contains(forward.host_port);
  });
}

}  // namespace

Fleet::Fleet(ports::Ledger& ledger, Threads& threads, Logger& logger)
    : ledger_(ledger), logger_(logger), monitor_(threads.NewMonitor()) {}

void Fleet::Add(HostPlan plan, std::unique_ptr<ports::Hypervisor> hypervisor) {
  const model::HostId id = plan.id;
  Member member{std::move(plan), std::move(hypervisor), {id, false, std::nullopt, "not connected"}};
  CHECK_MSG(members_.emplace(id, std::move(member)).second, "two hosts of one id");
}

Status Fleet::Connect(const model::HostId& id) {
  const auto found = members_.find(id);
  CHECK(found != members_.end());
  const Member& member = found->second;

  const Result<std::optional<model::Host>> row = ReadRow(id);
  if (!row) return std::unexpected(row.error());
  if (row->has_value() && (*row)->state == model::HostState::kDead) {
    SetStatus(id, {id, false, std::nullopt, "declared dead by an operator: it is not contacted"});
    return Fail(ErrorCode::kUnavailable, "host " + id.value + " is declared dead");
  }
  if (row->has_value() && (*row)->is_unread) {
    const std::string why =
        "the ledger was rebuilt without it: stop the service and run `vmonce rebuild`";
    SetStatus(id, {id, false, std::nullopt, why});
    return Fail(ErrorCode::kConflict, "host " + id.value + ": " + why);
  }

  const Result<ports::HostFacts> facts =
      member.hypervisor->Connect({ledger_.Id(), id}, PolicyFor(*row));
  if (!facts) {
    SetStatus(id, {id, false, std::nullopt, facts.error().detail});
    return Context("host " + id.value, facts.error());
  }
  bool is_ledger_silent = false;
  const Status current = CompareSequence(id, *member.hypervisor, is_ledger_silent);
  // The host has answered and is not known to be as the ledger has it: as good as not tried.
  if (is_ledger_silent) return std::unexpected(current.error());
  if (!current) {
    SetStatus(id, {id, false, std::nullopt, current.error().detail});
    return Context("host " + id.value, current.error());
  }
  const bool is_registered = row->has_value() && (*row)->is_registered;
  if (const Status registered = Register(member.plan, *facts, is_registered); !registered) {
    return registered;
  }
  SetStatus(id, {id, true, *facts, ""});
  return {};
}

ports::MarkerPolicy Fleet::PolicyFor(const std::optional<model::Host>& row) {
  return row && row->is_registered ? ports::MarkerPolicy::kRequire
                                   : ports::MarkerPolicy::kWriteIfNone;
}

Status Fleet::ConnectUncompared(const model::HostId& id) {
  const auto found = members_.find(id);
  CHECK(found != members_.end());
  const Result<std::optional<model::Host>> row = ReadRow(id);
  if (!row) return std::unexpected(row.error());
  const Result<ports::HostFacts> facts =
      found->second.hypervisor->Connect({ledger_.Id(), id}, PolicyFor(*row));
  if (!facts) return std::unexpected(facts.error());
  return Register(found->second.plan, *facts, row->has_value() && (*row)->is_registered);
}

Status Fleet::EnsureRow(const model::HostId& id) {
  const Result<std::optional<model::Host>> row = ReadRow(id);
  if (!row) return std::unexpected(row.error());
  if (row->has_value()) return {};
  const auto member = members_.find(id);
  if (member == members_.end()) return Fail(ErrorCode::kNotFound, "no such host");
  model::Host host;
  host.id = id;
  host.uri = member->second.plan.uri;
  host.capacity = Planned(member->second.plan.capacity, model::Resources{});
  return ledger_.PutHost(host);
}

Result<std::optional<model::Host>> Fleet::ReadRow(const model::HostId& id) {
  Result<std::vector<model::Host>> rows = ledger_.Hosts();
  if (!rows) return std::unexpected(rows.error());
  const auto row = std::ranges::find(*rows, id, &model::Host::id);
  MonitorLock lock(*monitor_);
  has_unread_ = std::ranges::any_of(*rows, [](const model::Host& host) {
    return host.is_unread && host.state != model::HostState::kDead;
  });
  if (row == rows->end()) return std::nullopt;
  if (const auto found = members_.find(id); found != members_.end()) {
    found->second.state = row->state;
    found->second.is_returning = row->is_returning;
  }
  return std::move(*row);
}

Result<bool> Fleet::IsDead(const model::HostId& id) const {
  {
    MonitorLock lock(*monitor_);
    const auto found = members_.find(id);
    if (found != members_.end() && found->second.has_been_tried &&
        found->second.state != model::HostState::kDead) {
      return false;
    }
  }
  // Not in the configuration any more, not yet asked for, or dead as far as is known here: whoever
  // leaves its machines behind must not do so on a host that was called back elsewhere.
  const Result<std::vector<model::Host>> rows = ledger_.Hosts();
  if (!rows) return Fail(ErrorCode::kUnavailable, "the ledger: " + rows.error().detail);
  const auto row = std::ranges::find(*rows, id, &model::Host::id);
  return row != rows->end() && row->state == model::HostState::kDead;
}

bool Fleet::IsReturning(const model::HostId& id) const {
  MonitorLock lock(*monitor_);
  const auto found = members_.find(id);
  return found != members_.end() && found->second.is_returning;
}

Status Fleet::SetState(const model::HostId& id, model::HostState state) {
  if (const Status there = EnsureRow(id); !there) return there;
  const Status set = ledger_.SetHostState(id, state);
  capacity_changed_();
  // Also after an error: it may be written all the same.
  if (const Result<std::optional<model::Host>> now = ReadRow(id); !now) {
    return std::unexpected(now.error());
  }
  if (set) logger_.Warning("host_declared", {{"host", id.value}, {"state", ToString(state)}});
  return set;
}

Status Fleet::CompareSequence(const model::HostId& id, ports::Hypervisor& hypervisor,
                              bool& is_ledger_silent) {
  {
    MonitorLock lock(*monitor_);
    if (members_.at(id).has_compared) return {};
  }
  const Result<std::vector<ports::DomainSighting>> seen = hypervisor.List();
  if (!seen) return std::unexpected(seen.error());
  std::int64_t newest = 0;
  for (const ports::DomainSighting& domain : *seen) {
    const bool is_ours = domain.label && domain.label->ledger == ledger_.Id();
    if (is_ours) newest = std::max(newest, model::NewestSequence(*domain.label));
  }
  const Result<ports::LedgerTotals> totals = ledger_.Totals();
  is_ledger_silent = !totals;
  if (!totals) return std::unexpected(totals.error());
  const bool is_behind = newest > totals->last_sequence;
  MonitorLock lock(*monitor_);
  is_behind_ = is_behind_ || is_behind;
  members_.at(id).has_compared = !is_behind;
  if (!is_behind) return {};
  return Fail(
      ErrorCode::kConflict,
      fmt::format("machines there (accept number {} at most) are ahead of the ledger, which "
                  "ends at {}: an older copy of it was restored. Nothing is accepted or "
                  "removed until the newest copy is back, or `vmonce rebuild` has read "
                  "them in",
                  newest, totals->last_sequence));
}

bool Fleet::MayAct(const model::HostId& id) const {
  MonitorLock lock(*monitor_);
  const auto found = members_.find(id);
  return !is_behind_ && found != members_.end() && found->second.has_compared;
}

LedgerAge Fleet::Age() const {
  MonitorLock lock(*monitor_);
  if (is_behind_) return LedgerAge::kBehind;
  const bool is_told =
      std::ranges::all_of(members_, [](const auto& entry) { return entry.second.has_been_tried; });
  if (!is_told) return LedgerAge::kUntold;
  return has_unread_ ? LedgerAge::kPartly : LedgerAge::kCurrent;
}

bool Fleet::HasComparedAll() const {
  MonitorLock lock(*monitor_);
  return !is_behind_ && !has_unread_ && std::ranges::all_of(members_, [](const auto& entry) {
    return entry.second.has_compared || entry.second.state == model::HostState::kDead;
  });
}

Status Fleet::Register(const HostPlan& plan, const ports::HostFacts& facts, bool is_registered) {
  model::Host host;
  host.id = plan.id;
  host.uri = plan.uri;
  host.capacity = Planned(plan.capacity, UsableCapacity(facts.capacity));
  const Status put = ledger_.PutHost(host);
  capacity_changed_();
  if (!put) return put;
  if (is_registered) return {};
  return ledger_.MarkRegistered(plan.id);
}

void Fleet::SetStatus(const model::HostId& id, HostStatus status) {
  const Time now = ledger_.Now();
  bool is_news = false;
  {
    MonitorLock lock(*monitor_);
    Member& member = members_.at(id);
    HostStatus& held = member.status;
    // The first try tells, too: a host that is not there from the start.
    is_news = !member.has_been_tried || status.is_reachable != held.is_reachable;
    status.since = is_news ? now : held.since;
    status.last_error = status.is_reachable ? held.last_error : status.problem;
    status.last_error_at = status.is_reachable ? held.last_error_at : now;
    member.has_been_tried = true;
    held = status;
  }
  if (!is_news) return;
  if (status.is_reachable) {
    logger_.Info("host_connected", {{"host", id.value},
                                    {"hypervisor", status.facts->hypervisor},
                                    {"accelerator", status.facts->accelerator}});
  } else {
    logger_.Warning("host_unreachable", {{"host", id.value}, {"cause", status.problem}});
  }
}

ports::Hypervisor* Fleet::Find(const model::HostId& id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : found->second.hypervisor.get();
}

std::vector<model::HostId> Fleet::Ids() const {
  std::vector<model::HostId> ids;
  for (const auto& [id, member] : members_) ids.push_back(id);
  return ids;
}

bool Fleet::HasBeenTried(const model::HostId& id) const {
  MonitorLock lock(*monitor_);
  const auto found = members_.find(id);
  return found == members_.end() || found->second.has_been_tried;
}

std::string Fleet::UriOf(const model::HostId& id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? "" : found->second.plan.uri;
}

HostStatus Fleet::StatusOf(const model::HostId& id) const {
  MonitorLock lock(*monitor_);
  const auto found = members_.find(id);
  if (found == members_.end()) return {id, false, std::nullopt, "not in the configuration"};
  return found->second.status;
}

Result<std::vector<model::Candidate>> Fleet::Candidates() const {
  Result<std::vector<model::Host>> rows = ledger_.Hosts();
  if (!rows) return std::unexpected(rows.error());
  std::vector<model::Candidate> candidates;
  for (model::Host& host : *rows) {
    const bool is_reachable = StatusOf(host.id).is_reachable;
    candidates.push_back({std::move(host), is_reachable});
  }
  return candidates;
}

bool Fleet::Offers(const model::HostId& id, const model::VmSpec& spec) const {
  const auto found = members_.find(id);
  return found != members_.end() && HasNetwork(found->second.plan, spec.network) &&
         HasPorts(found->second.plan, spec.forwards);
}

std::optional<std::string> Fleet::WhyNotOffered(const model::VmSpec& spec) const {
  const auto any = [&](auto has) {
    return std::ranges::any_of(members_, [&](const auto& entry) { return has(entry.second.plan); });
  };
  if (any([&](const HostPlan& plan) {
        return HasNetwork(plan, spec.network) && HasPorts(plan, spec.forwards);
      })) {
    return std::nullopt;
  }
  if (!any([&](const HostPlan& plan) { return HasNetwork(plan, spec.network); })) {
    return fmt::format("no host offers the network '{}'", spec.network);
  }
  return "a host_port that was asked for is outside the range that hosts keep for forwards";
}

std::vector<std::string> Fleet::NetworksOf(const model::HostId& id) const {
  const auto found = members_.find(id);
  if (found == members_.end()) return {};
  std::vector<std::string> networks = found->second.plan.networks;
  networks.emplace(networks.begin(), model::kUserNetwork);
  return networks;
}

Result<ports::PortPlan> Fleet::PortsOf(const model::HostId& id) const {
  const auto found = members_.find(id);
  if (found == members_.end()) {
    return Fail(ErrorCode::kUnavailable,
                "host " + id.value + " is not in the configuration any more");
  }
  const HostPlan& plan = found->second.plan;
  return ports::PortPlan{plan.forward_ports, plan.forward_address, {}};
}

Milliseconds Fleet::SettleTime() const {
  Milliseconds longest{0};
  for (const auto& [id, member] : members_) {
    longest = std::max(longest, member.hypervisor->SettleTime());
  }
  return longest;
}

}  // namespace vmonce::workflows
