#include "workflows/rebuild.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/label.h"
#include "workflows/rebuild_images.h"

namespace vmonce::workflows {

using model::HostId;
using model::OperationId;
using model::Vm;

// One operation that is to be written.
struct Rebuild::Draft {
  ports::RebuiltOperation rows;
  bool is_new = false;
  int handed_back = 0;
  int given_up = 0;
};

struct Rebuild::Survey {
  std::map<OperationId, std::vector<FoundMachine>> machines;
  std::set<model::VmId> seen;
  std::set<HostId> read;
  std::set<HostId> unasked;
  std::set<HostId> blocked;  // Read, and something there is open.
  bool is_behind = false;
  RebuildReport report;

  void Open(const std::vector<FoundMachine>& found, const std::string& why) {
    std::string where;
    for (const FoundMachine& machine : found) {
      blocked.insert(machine.host);
      where += fmt::format("{}{} on host {}", where.empty() ? "" : ", ", machine.seen.name,
                           machine.host.value);
    }
    report.open.push_back(fmt::format("{}: {}; none of them was written", where, why));
  }
};

namespace {

std::string NameOf(const Vm& vm) { return fmt::format("{} ({})", vm.name, ToString(vm.id)); }

bool IsLeaving(const Vm& vm) {
  return vm.delete_operation || vm.state == model::VmState::kDeleted ||
         vm.state == model::VmState::kDeleting;
}

}  // namespace

Result<RebuildReport> Rebuild::Run(const RebuildOptions& options) {
  Survey survey;
  if (const Status read = ReadHosts(options, survey); !read) return std::unexpected(read.error());
  auto drafts = Plan(options, survey);
  if (!drafts) return std::unexpected(drafts.error());
  RebuildReport& report = survey.report;
  report.unread = survey.unasked;
  report.unread.insert(survey.blocked.begin(), survey.blocked.end());
  for (const Draft& draft : *drafts) {
    report.operations += draft.is_new ? 1 : 0;
    const auto live = std::ranges::count_if(
        draft.rows.vms, [](const Vm& vm) { return vm.state != model::VmState::kDeleted; });
    report.vms += draft.is_new ? static_cast<int>(live) : 0;
    report.handed_back += draft.handed_back;
    report.given_up += draft.given_up;
  }
  if (options.is_dry_run) return std::move(report);
  if (const Status written = Write(survey, *drafts, report); !written) {
    return std::unexpected(written.error());
  }
  return std::move(report);
}

// --- Reading

Status Rebuild::ReadHosts(const RebuildOptions& options, Survey& survey) {
  const auto rows = parts_.ledger.Hosts();
  if (!rows) return std::unexpected(rows.error());
  std::map<HostId, model::Host> hosts;
  for (const HostId& id : parts_.fleet.Ids()) hosts[id].id = id;
  for (const model::Host& row : *rows) hosts[row.id] = row;
  std::string silent;
  const auto cannot_read = [&silent](const HostId& id, const std::string& why) {
    silent += fmt::format("{}host {}: {}", silent.empty() ? "" : "; ", id.value, why);
  };
  for (const auto& [id, host] : hosts) {
    survey.is_behind = survey.is_behind || host.is_unread;
    if (options.without.contains(id)) {
      survey.unasked.insert(id);
    } else if (host.state == model::HostState::kDead) {
      survey.report.told.push_back(fmt::format("host {} is declared dead: not asked", id.value));
    } else if (parts_.fleet.Find(id) == nullptr) {
      if (host.reserved.vms > 0 || host.is_unread) {
        cannot_read(id, "the configuration has it no more");
      }
    } else if (auto listed = ListOf(id, options.is_dry_run); !listed) {
      cannot_read(id, listed.error().detail);
    } else {
      survey.read.insert(id);
      for (ports::DomainSighting& domain : *listed) {
        if (!domain.label || domain.label->ledger != parts_.ledger.Id()) continue;
        ++survey.report.machines;
        survey.report.newest = std::max(survey.report.newest, model::NewestSequence(*domain.label));
        survey.seen.insert(domain.id);
        survey.machines[domain.label->operation].push_back(MachineOf(id, std::move(domain)));
      }
    }
  }
  if (silent.empty()) return {};
  return Fail(ErrorCode::kUnavailable, silent);
}

Result<std::vector<ports::DomainSighting>> Rebuild::ListOf(const HostId& id, bool is_dry_run) {
  ports::Hypervisor& host = *parts_.fleet.Find(id);
  if (!is_dry_run) {
    const Status connected = parts_.fleet.ConnectUncompared(id);
    if (!connected) return std::unexpected(connected.error());
    return host.List();
  }
  const auto marker = host.ReadMarker();
  if (!marker) return std::unexpected(marker.error());
  // A host that was never registered has no machine of ours.
  if (!marker->has_value()) return std::vector<ports::DomainSighting>();
  const auto facts = host.Connect({parts_.ledger.Id(), id}, ports::MarkerPolicy::kRequire);
  if (!facts) return std::unexpected(facts.error());
  return host.List();
}

FoundMachine Rebuild::MachineOf(const HostId& host, ports::DomainSighting seen) {
  FoundMachine machine{host, std::move(seen), true};
  if (machine.seen.power != model::Observed::kStopped) return machine;
  const auto console = parts_.fleet.Find(host)->ReadConsole(machine.seen.id, 0, 1);
  machine.was_started = console || console.error().code != ErrorCode::kNotFound;
  return machine;
}

// --- Planning

Result<std::vector<Rebuild::Draft>> Rebuild::Plan(const RebuildOptions& options, Survey& survey) {
  const auto totals = parts_.ledger.Totals();
  if (!totals) return std::unexpected(totals.error());
  survey.is_behind = survey.is_behind || survey.report.newest > totals->last_sequence;
  std::map<OperationId, Draft> drafts;
  for (const auto& [id, machines] : survey.machines) {
    if (const Status planned = PlanFound(options, id, survey, drafts); !planned) {
      return std::unexpected(planned.error());
    }
  }
  // Of a ledger that is the newest, every unfinished create is its workers' business.
  if (survey.is_behind) {
    if (const Status planned = PlanMissing(survey, drafts); !planned) {
      return std::unexpected(planned.error());
    }
  }
  std::vector<Draft> ordered;
  for (auto& [id, draft] : drafts) ordered.push_back(std::move(draft));
  std::ranges::sort(ordered, {}, [](const Draft& draft) { return draft.rows.operation.sequence; });
  return ordered;
}

Status Rebuild::PlanFound(const RebuildOptions& options, const OperationId& id, Survey& survey,
                          std::map<OperationId, Draft>& drafts) {
  const std::vector<FoundMachine>& machines = survey.machines.at(id);
  const auto known = parts_.ledger.GetOperation(id);
  if (!known) return std::unexpected(known.error());
  if (const auto why = WhyNotTogether(machines)) {
    // Of a known operation, each sweep raises the alarm about the copy, and leaves it alone.
    if (known->has_value()) survey.report.told.push_back("operation " + ToString(id) + ": " + *why);
    if (!known->has_value()) survey.Open(machines, *why);
    return {};
  }
  if (!known->has_value()) return PlanUnknown(options, machines, survey, drafts);
  for (const FoundMachine& machine : machines) {
    if (const Status planned = PlanKnown(**known, machine, survey, drafts); !planned) {
      return planned;
    }
  }
  return {};
}

Status Rebuild::PlanUnknown(const RebuildOptions& options,
                            const std::vector<FoundMachine>& machines, Survey& survey,
                            std::map<OperationId, Draft>& drafts) {
  std::vector<model::VmId> ids;
  for (const FoundMachine& machine : machines) {
    ids.push_back(machine.seen.id);
    if (machine.seen.name != model::DomainName(parts_.ledger.Id(), machine.seen.id)) {
      survey.Open(machines, machine.seen.name + " carries a label that was copied by hand");
      return {};
    }
    const auto row = parts_.ledger.GetVm(machine.seen.id);
    if (!row) return std::unexpected(row.error());
    if (row->has_value()) {
      survey.Open(machines, "the ledger knows a machine of that id from another operation");
      return {};
    }
  }
  const auto gone = parts_.ledger.InTombstones(ids);
  if (!gone) return std::unexpected(gone.error());
  // Deleted long ago, and back: a sweep tells of it.
  if (!gone->empty()) return {};
  survey.is_behind = true;
  const RebuildMoment moment{parts_.ledger.Now(), options.run_stopped, [this] {
                               return model::VmId{NewUuidV7(parts_.clock, parts_.random)};
                             }};
  Draft& draft = drafts[machines.front().seen.label->operation];
  draft.rows = NewRows(machines, moment);
  draft.is_new = true;
  for (const Vm& vm : draft.rows.vms) {
    const bool is_gone = vm.state == model::VmState::kDeleted;
    survey.report.told.push_back(
        is_gone ? fmt::format("{} was not found: never made, or deleted", vm.name)
                : fmt::format("{} is known again: on host {}, {}{}", NameOf(vm), vm.host->value,
                              ToString(vm.observed),
                              vm.observed == model::Observed::kStopped &&
                                      vm.desired == model::Desired::kRunning
                                  ? ", to be started"
                                  : ""));
  }
  return {};
}

Status Rebuild::PlanKnown(const model::Operation& operation, const FoundMachine& machine,
                          Survey& survey, std::map<OperationId, Draft>& drafts) {
  const model::Label& label = *machine.seen.label;
  const auto row = parts_.ledger.GetVm(machine.seen.id);
  if (!row) return std::unexpected(row.error());
  const auto is_its = [&](const model::Item& item) {
    return item.subject == machine.seen.id.value && item.index == label.index;
  };
  const auto place = std::ranges::find_if(operation.items, is_its);
  if (!row->has_value() || place == operation.items.end()) {
    survey.Open({machine}, "the ledger knows its operation with other machines");
    return {};
  }
  Vm vm = **row;
  // A delete goes on, and what the row says is gone is an orphan's story.
  if (IsLeaving(vm)) return {};
  const bool is_elsewhere = vm.host != machine.host;
  const bool may_move = is_elsewhere && (!vm.host || !survey.unasked.contains(*vm.host));
  const bool is_unfinished = !IsFinished(operation.state) && !IsEnded(place->phase);
  const bool went_on = WentOn(operation, label);
  const bool is_undone =
      place->phase == model::ItemPhase::kFailed || place->phase == model::ItemPhase::kUndoing;
  const bool is_handed_back =
      (is_undone && went_on) || (is_unfinished && !is_undone && (went_on || may_move));
  if (!is_handed_back && (is_undone || !may_move)) return {};

  const auto [found, is_first] = drafts.try_emplace(operation.id);
  Draft& draft = found->second;
  if (is_first) draft.rows.operation = operation;
  draft.rows.detail = "found on its host when the ledger was rebuilt";
  if (is_handed_back) {
    model::Operation& wanted = draft.rows.operation;
    model::Item& item = wanted.items[static_cast<std::size_t>(place - operation.items.begin())];
    HandBack(machine, parts_.ledger.Now(), wanted, item, vm);
    ++draft.handed_back;
  } else {
    MoveTo(machine, vm);
  }
  survey.report.told.push_back(fmt::format("{} is on host {}{}", NameOf(vm), machine.host.value,
                                           is_handed_back ? ": its create goes on there" : ""));
  draft.rows.vms.push_back(std::move(vm));
  return {};
}

Status Rebuild::PlanMissing(Survey& survey, std::map<OperationId, Draft>& drafts) {
  const auto unfinished = parts_.rows.Unfinished();
  if (!unfinished) return std::unexpected(unfinished.error());
  for (const model::Operation& operation : *unfinished) {
    if (operation.kind != model::OperationKind::kCreate) continue;
    for (std::size_t i = 0; i < operation.items.size(); ++i) {
      const model::VmId id{operation.items[i].subject};
      if (IsEnded(operation.items[i].phase) || survey.seen.contains(id)) continue;
      const auto row = parts_.ledger.GetVm(id);
      if (!row) return std::unexpected(row.error());
      if (!row->has_value() || IsLeaving(**row)) continue;
      // It may be where nobody looked; its worker waits for that.
      const auto& host = (*row)->host;
      if (host ? survey.unasked.contains(*host) : !survey.unasked.empty()) continue;
      const auto [found, is_first] = drafts.try_emplace(operation.id);
      Draft& draft = found->second;
      if (is_first) draft.rows.operation = operation;
      if (draft.rows.detail.empty()) draft.rows.detail = "not found when the ledger was rebuilt";
      GiveUp(draft.rows.operation.items[i], draft.rows.vms.emplace_back(**row));
      ++draft.given_up;
      survey.report.told.push_back(fmt::format(
          "{} was being made in the copy and is nowhere: its create has failed", NameOf(**row)));
    }
    if (const auto draft = drafts.find(operation.id); draft != drafts.end()) {
      EndIfAllHave(parts_.ledger.Now(), draft->second.rows.operation);
    }
  }
  return {};
}

// --- Writing

// The flags stand first and go last: whatever ends this in between, no create is taken until it was
// run again.
Status Rebuild::Write(const Survey& survey, std::vector<Draft>& drafts, RebuildReport& report) {
  if (!survey.is_behind && drafts.empty() && report.IsWhole()) return {};
  std::set<HostId> all = survey.read;
  all.insert(survey.unasked.begin(), survey.unasked.end());
  if (const Status flagged = Flag(all, true); !flagged) return flagged;
  if (const Status raised = parts_.rows.RaiseSequence(report.newest); !raised) return raised;
  for (Draft& draft : drafts) {
    if (const Status registered = RegisterImages(draft, report); !registered) return registered;
    const auto notes = parts_.rows.Rewrite(draft.rows);
    if (!notes) return std::unexpected(notes.error());
    report.told.insert(report.told.end(), notes->begin(), notes->end());
  }
  std::set<HostId> whole;
  std::ranges::set_difference(survey.read, report.unread, std::inserter(whole, whole.end()));
  return Flag(whole, false);
}

Status Rebuild::Flag(const std::set<HostId>& hosts, bool is_unread) {
  for (const HostId& id : hosts) {
    const Status there = parts_.fleet.EnsureRow(id);
    if (!there) return Context("host " + id.value, there.error());
    if (const Status flagged = parts_.rows.SetUnread(id, is_unread); !flagged) return flagged;
  }
  return {};
}

Status Rebuild::RegisterImages(Draft& draft, RebuildReport& report) {
  if (!draft.is_new) return {};
  for (Vm& vm : draft.rows.vms) {
    auto told = RegisterImage(parts_.images, vm.spec.image);
    if (!told) return std::unexpected(told.error());
    if (!told->empty()) report.told.push_back(*std::move(told));
  }
  return {};
}

}  // namespace vmonce::workflows
