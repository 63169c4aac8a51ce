// What must be so when nothing is in flight any more.
#include <fmt/format.h>

#include "model/label.h"
#include "sim/oracle.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

std::string NameOf(const model::Vm& vm) {
  return vm.name + " (" + ToString(vm.id).substr(24) + ")";
}

}  // namespace

void Oracle::Audit() {
  AuditKeys();
  AuditOperations();
  AuditRows();
  AuditHosts();
  AuditSums();
  AuditEvents();
}

bool Oracle::IsAllWell() {
  is_trial_ = true;
  trial_breaches_ = 0;
  Audit();
  is_trial_ = false;
  return trial_breaches_ == 0;
}

void Oracle::MarkWhatHappened() {
  for (const auto& [id, fence] : fences_) {
    const auto lines = stage_.ledger->Timeline(id);
    if (!lines) continue;
    for (const model::TimelineEntry& line : *lines) {
      stage_.story.Mark("timeline." + line.event);
      if (line.event == "looked" && line.detail.starts_with("adopted")) {
        stage_.story.Mark("timeline.adopted");
      }
    }
  }
}

std::vector<model::Vm> Oracle::AllRows() {
  std::vector<model::Vm> rows;
  std::set<std::string> projects;
  for (const auto& [id, key] : keys_) projects.insert(key.project.value);
  ports::VmFilter filter;
  filter.with_deleted = true;
  for (const std::string& project : projects) {
    ports::Page page{100, ""};
    while (true) {
      auto some = stage_.ledger->ListVms(model::ProjectId{project}, filter, page);
      if (!some) return rows;
      rows.insert(rows.end(), some->rows.begin(), some->rows.end());
      if (some->next.empty()) break;
      page.after = some->next;
    }
  }
  return rows;
}

void Oracle::AuditKeys() {
  for (const auto& [id, key] : keys_) {
    if (!key.operation || key.may_be_gone) continue;
    const auto operation = stage_.ledger->GetOperation(*key.operation);
    if (operation && operation->has_value()) continue;
    Break("nothing_told_is_lost", "the operation of key " + key.key + " is gone");
  }
}

void Oracle::AuditOperations() {
  const auto totals = stage_.ledger->Totals();
  if (!totals) return Break("the_ledger_answers", totals.error().detail);
  if (totals->unfinished != 0) {
    Break("everything_ends", fmt::format("{} operations are unfinished", totals->unfinished));
  }
  for (const auto& [id, fence] : fences_) {
    const auto operation = stage_.ledger->GetOperation(id);
    if (!operation || !operation->has_value()) continue;
    const auto lines = stage_.ledger->Timeline(id);
    if (!lines || lines->empty() || (lines->front().event != "accepted" && !was_restored_)) {
      Break("the_story_is_whole", ToString(id) + " has no first line");
      continue;
    }
    for (const model::TimelineEntry& line : *lines) {
      if (line.detail.contains("SECRET"))
        Break("no_secret_is_kept", "in a timeline: " + line.event);
    }
    const model::Operation& row = **operation;
    for (const std::string* text :
         {&row.canonical_request, &row.intent, &row.sealed_secrets, &row.key_prefix}) {
      if (text->contains("SECRET")) Break("no_secret_is_kept", "in operation " + ToString(id));
    }
    const bool may_come_back = row.failure && row.failure->passing;
    if (model::IsFinished(row.state) && !row.sealed_secrets.empty() && !may_come_back &&
        row.state == model::OperationState::kSucceeded) {
      Break("no_secret_is_kept", "sealed user data of " + ToString(id) + " is still there");
    }
  }
}

void Oracle::AuditRows() {
  for (const model::Vm& vm : AllRows()) AuditRow(vm);
}

// What a person has changed stays so, whatever a worker records of the same row.
void Oracle::AuditMark(const model::Vm& vm) {
  const auto set = marks_.find(vm.id);
  if (set == marks_.end() || !set->second) return;
  const auto label = vm.labels.find(kMarkLabel);
  if (label != vm.labels.end() && label->second == *set->second) return;
  Break("a_change_stays", NameOf(vm) + " has lost the label that it was told to have");
}

void Oracle::AuditRow(const model::Vm& vm) {
  if (vm.holder) Break("holds_are_given_back", NameOf(vm) + " is still held");
  AuditMark(vm);
  int domains = 0;
  int running = 0;
  int volumes = 0;
  std::set<const hypervisor::SimulatedHost*> seen;
  for (const Machine& machine : stage_.machines) {
    if (!seen.insert(machine.host.get()).second) continue;
    const auto domain = machine.host->Find(vm.id);
    if (domain) ++domains;
    if (domain && domain->power == model::Observed::kRunning) ++running;
    for (const std::string& name : {model::DiskName(stage_.ledger->Id(), vm.id),
                                    model::SeedName(stage_.ledger->Id(), vm.id)}) {
      if (machine.host->HasVolume(name)) ++volumes;
    }
  }
  const bool is_nobodys = meddled_.contains(vm.id);
  switch (vm.state) {
    case model::VmState::kReady:
      if (is_nobodys) break;
      if (domains != 1)
        Break("one_machine", fmt::format("{} is ready and has {} domains", NameOf(vm), domains));
      if (vm.desired == model::Desired::kRunning && running != 1 && !was_restored_ &&
          !HasFailedStart(vm)) {
        Break("what_should_run_runs", NameOf(vm) + " is ready and does not run");
      }
      if (volumes != 2 && given_up_.empty())
        Break("one_machine", fmt::format("{} is ready and has {} volumes", NameOf(vm), volumes));
      break;
    case model::VmState::kMissing:
      if (!is_nobodys) Break("one_machine", NameOf(vm) + " is missing, and nobody removed it");
      break;
    case model::VmState::kFailed:
    case model::VmState::kDeleted:
      if (vm.host) Break("what_is_gone_is_given_back", NameOf(vm) + " has a host");
      if (vm.holds_reservation)
        Break("what_is_gone_is_given_back", NameOf(vm) + " holds its reservation");
      if (is_nobodys) break;
      if (domains > 0) {
        Break("no_effect_is_left",
              fmt::format("{} is {} and has {} domains", NameOf(vm), ToString(vm.state), domains));
      }
      // A disk on a host that was given up is kept and reported.
      if (volumes > 0 && given_up_.empty()) {
        Break("no_effect_is_left",
              fmt::format("{} is {} and has {} volumes", NameOf(vm), ToString(vm.state), volumes));
      }
      break;
    default:
      Break("everything_ends", fmt::format("{} is {}", NameOf(vm), ToString(vm.state)));
      break;
  }
}

// Who was told that a start failed asks again; nobody starts it behind their back.
bool Oracle::HasFailedStart(const model::Vm& vm) {
  ports::OperationFilter filter;
  filter.vm = vm.id;
  filter.state = model::OperationState::kFailed;
  const auto failed = stage_.ledger->ListOperations(vm.project, filter, {100, ""});
  return !failed || std::ranges::any_of(failed->rows, [](const model::Operation& operation) {
    return operation.kind == model::OperationKind::kStart ||
           operation.kind == model::OperationKind::kReboot;
  });
}

void Oracle::AuditHosts() {
  for (const model::VmId& vm : strangers_) {
    const auto row = stage_.ledger->GetVm(vm);
    if (row && row->has_value()) {
      Break("strangers_are_left_alone", "a stranger's domain has a row in the ledger");
    }
  }
  for (const auto& [host, vm] : planted_) {
    const auto machine = std::ranges::find(stage_.machines, host, &Machine::id);
    if (machine->host->Find(vm)) continue;
    Break("the_unclaimed_are_kept", "a machine without row and tombstone was removed");
  }
  std::map<model::VmId, model::Vm> rows;
  for (const model::Vm& vm : AllRows()) rows.emplace(vm.id, vm);
  std::set<const hypervisor::SimulatedHost*> seen;
  for (const Machine& machine : stage_.machines) {
    if (!seen.insert(machine.host.get()).second) continue;
    for (const hypervisor::SimulatedDomain& domain : machine.host->Domains()) {
      if (!domain.label || domain.label->ledger != stage_.ledger->Id()) continue;
      if (meddled_.contains(domain.id) || rows.contains(domain.id)) continue;
      if (planted_.contains({machine.id, domain.id})) continue;
      Break("a_row_precedes_its_machine",
            fmt::format("{} has {} and the ledger has no row", machine.id.value, domain.name));
    }
    for (const std::string& name : machine.host->Volumes()) {
      const auto vm = model::VmOfVolume(stage_.ledger->Id(), name);
      if (!vm || meddled_.contains(*vm) || rows.contains(*vm)) continue;
      // Kept and reported: a host was given up, or the ledger forgot whose it was.
      if (!given_up_.empty() || was_restored_) continue;
      Break("no_effect_is_left", fmt::format("{} has volume {} of nobody", machine.id.value, name));
    }
  }
}

void Oracle::AuditSums() {
  std::map<std::string, model::Resources> by_project;
  std::map<std::string, model::Resources> by_host;
  for (const auto& [id, key] : keys_) by_project[key.project.value];
  for (const model::Vm& vm : AllRows()) {
    if (vm.holds_reservation) {
      by_project[vm.project.value] = by_project[vm.project.value] + Demand(vm.spec);
    }
    if (vm.host) by_host[vm.host->value] = by_host[vm.host->value] + Demand(vm.spec);
  }
  for (const auto& [project, held] : by_project) {
    const auto usage = stage_.ledger->Usage(model::ProjectId{project});
    if (!usage || *usage != held) {
      Break("sums_are_right", fmt::format("project {}: usage is {} VMs, rows hold {}", project,
                                          usage ? usage->vms : -1, held.vms));
    }
    if (held.vms > stage_.shape.quota_vms) {
      Break("quota_holds", fmt::format("project {} holds {} of {} VMs", project, held.vms,
                                       stage_.shape.quota_vms));
    }
  }
  const auto hosts = stage_.ledger->Hosts();
  if (!hosts) return;
  for (const model::Host& host : *hosts) {
    if (host.reserved != by_host[host.id.value]) {
      Break("sums_are_right", fmt::format("host {}: {} VMs reserved, {} placed", host.id.value,
                                          host.reserved.vms, by_host[host.id.value].vms));
    }
    if (host.reserved.vms > stage_.shape.capacity_vms) {
      Break("capacity_holds", fmt::format("host {} has {} of {} VMs", host.id.value,
                                          host.reserved.vms, stage_.shape.capacity_vms));
    }
  }
}

void Oracle::AuditEvents() {
  const auto events = stage_.ledger->Outbox(1'000'000);
  if (!events) return;
  std::set<Uuid> ids;
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const model::Event& event : *events) {
    if (!ids.insert(event.id).second) Break("an_event_is_told_once", "two have one id");
    if (event.data.contains("SECRET")) Break("no_secret_is_kept", "in an event");
    ++counts[{event.subject, event.type}];
  }
  for (const model::Vm& vm : AllRows()) {
    const auto told = [&](std::string_view type) {
      const auto found = counts.find({ToString(vm.id), std::string(type)});
      return found == counts.end() ? 0 : found->second;
    };
    if (vm.state == model::VmState::kReady && told("vm.ready") != 1 && !keys_.empty() &&
        !meddled_.contains(vm.id) && !was_restored_ && !events->empty() &&
        events->front().at <= vm.created) {
      Break("an_event_is_told_once",
            fmt::format("{} became ready {} times", NameOf(vm), told("vm.ready")));
    }
    if (vm.state == model::VmState::kDeleted && told("vm.deleted") > 1) {
      Break("an_event_is_told_once", NameOf(vm) + " was deleted more than once");
    }
  }
}

}  // namespace vmonce::sim
