#include "sim/oracle.h"

#include <fmt/format.h>

#include "model/label.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

bool Runs(const std::optional<hypervisor::SimulatedDomain>& domain) {
  return domain && domain->power == model::Observed::kRunning;
}

std::string Short(const model::VmId& vm) { return ToString(vm).substr(24); }

std::vector<model::VmId> Sorted(std::vector<model::VmId> vms) {
  std::ranges::sort(vms);
  return vms;
}

// What the protocol's section 5 may answer before a key is consumed.
bool IsRefusalOfNew(std::string_view code) {
  return code == "quota_exceeded" || code == "no_capacity" || code == "name_taken";
}

}  // namespace

void Oracle::Break(std::string_view invariant, std::string what) {
  if (is_trial_) {
    ++trial_breaches_;
    return;
  }
  stage_.story.Break(invariant, std::move(what));
}

KeyStory& Oracle::Key(const model::ProjectId& project, const std::string& key) {
  KeyStory& story = keys_[{project.value, key}];
  story.project = project;
  story.key = key;
  return story;
}

void Oracle::CreateAnswered(KeyStory& key, int body, const service::Outcome& outcome) {
  stage_.story.Mark("told." + (!outcome             ? outcome.error().code
                               : outcome->is_replay ? std::string("existing")
                                                    : std::string("created")));
  if (!outcome) {
    const std::string& code = outcome.error().code;
    if (code == "idempotency_key_reused" && key.bodies == 1) {
      Break("one_answer_for_a_key", "key " + key.key + ": its only request is called another one");
    }
    if (code == "idempotency_key_expired" && !key.may_be_gone) {
      Break("a_key_outlives_its_vm", "key " + key.key + " is told to be expired");
    }
    // A known key is answered without looking at what changed since; only a failed one that starts
    // anew needs room again.
    if (IsRefusalOfNew(code) && key.operation && key.body == body) {
      const auto operation = stage_.ledger->GetOperation(*key.operation);
      if (operation && *operation && (*operation)->state != model::OperationState::kFailed) {
        Break("known_before_checked",
              fmt::format("key {} was accepted, and its retry is told {}", key.key, code));
      }
    }
    CheckRefusal(key, outcome.error());
    return;
  }
  if (outcome->vms.size() > 1) stage_.story.Mark("told.batch");
  CheckLive(*outcome);
  if (!outcome->operation) return Break("one_answer_for_a_key", "a create without an operation");
  std::vector<model::VmId> vms;
  for (const model::Vm& vm : outcome->vms) vms.push_back(vm.id);
  if (!outcome->is_replay && is_behind_) {
    Break("an_older_ledger_takes_nothing", "key " + key.key + " is created while labels are ahead");
  }
  if (!outcome->is_replay) ++key.created;
  if (key.created > 1) Break("created_once", "key " + key.key + " is created for the second time");
  if (!key.operation) {
    key.is_rebuilt = false;
    key.operation = outcome->operation->id;
    key.vms = vms;
    key.body = body;
    return;
  }
  // Of a batch, those whose machines were there.
  const bool are_same =
      key.is_rebuilt ? std::ranges::includes(Sorted(vms), Sorted(key.vms)) : key.vms == vms;
  if (*key.operation != outcome->operation->id || !are_same) {
    Break("one_answer_for_a_key",
          fmt::format("key {} is answered with operation {} and before {}", key.key,
                      ToString(outcome->operation->id), ToString(*key.operation)));
  }
  if (*key.body != body) {
    Break("one_request_for_a_key", "key " + key.key + ": two different requests were accepted");
  }
}

// A refusal consumes nothing: once there is room, the same key is accepted.
void Oracle::CheckRefusal(const KeyStory& key, const model::Problem& problem) {
  if (!is_calm_ || problem.code != "quota_exceeded") return;
  const auto usage = stage_.ledger->Usage(key.project);
  if (!usage || usage->vms + key.count > stage_.shape.quota_vms) return;
  Break("a_refusal_consumes_nothing", fmt::format("key {} is refused, and {} of {} VMs are used",
                                                  key.key, usage->vms, stage_.shape.quota_vms));
}

void Oracle::CheckLive(const service::Answer& answer) {
  if (!is_calm_ || !answer.operation) return;
  const auto row = stage_.ledger->GetOperation(answer.operation->id);
  if (!row || !row->has_value()) return;
  if (model::IsFinished((*row)->state) && (*row)->state != answer.operation->state) {
    Break("answers_are_live",
          fmt::format("operation {} is {} and told to be {}", ToString((*row)->id),
                      ToString((*row)->state), ToString(answer.operation->state)));
  }
}

void Oracle::Observed(const ports::Observation& observation) {
  if (observation.state != model::VmState::kMissing || meddled_.contains(observation.vm)) return;
  const auto row = stage_.ledger->GetVm(observation.vm);
  if (!row || !row->has_value() || !(*row)->host || !IsUsable(*(*row)->host)) return;
  // Its machines are missing from the moment it is given up until a sweep has found them again.
  if (given_up_.contains(*(*row)->host)) return;
  const auto machine = std::ranges::find(stage_.machines, *(*row)->host, &Machine::id);
  if (machine == stage_.machines.end() || !machine->host->Find(observation.vm)) return;
  Break("missing_is_so", Short(observation.vm) + " is told to be missing and is there");
}

void Oracle::DeleteAnswered(const model::VmId& vm, const service::Outcome& outcome) {
  if (outcome || outcome.error().code != "vm_not_found" || was_restored_) return;
  const bool may_be_gone = std::ranges::any_of(keys_, [&](const auto& entry) {
    const KeyStory& key = entry.second;
    return key.may_be_gone && std::ranges::find(key.vms, vm) != key.vms.end();
  });
  if (!may_be_gone) Break("nothing_told_is_lost", "VM " + Short(vm) + " is not known any more");
}

void Oracle::LedgerIsOlder() {
  was_restored_ = true;
  fences_.clear();
  marks_.clear();
  const model::LedgerId ledger = stage_.ledger->Id();
  std::set<model::VmId> whole;
  std::int64_t newest = 0;
  for (const Machine& machine : stage_.machines) {
    for (const auto& domain : machine.host->Domains()) {
      if (!domain.label || domain.label->ledger != ledger) continue;
      newest = std::max(newest, domain.label->sequence);
      const bool is_whole = Runs(domain) &&
                            machine.host->HasVolume(model::DiskName(ledger, domain.id)) &&
                            machine.host->HasVolume(model::SeedName(ledger, domain.id));
      (is_whole ? whole : meddled_).insert(domain.id);
    }
  }
  const auto totals = stage_.ledger->Totals();
  is_behind_ = totals && newest > totals->last_sequence;
  for (const model::Vm& vm : AllRows()) {
    if (!whole.contains(vm.id)) meddled_.insert(vm.id);
  }
  for (auto& [id, key] : keys_) {
    std::erase_if(key.vms, [&](const model::VmId& vm) { return !whole.contains(vm); });
    key.is_rebuilt = true;
    key.created = 0;
    if (key.vms.empty()) key.operation.reset();
  }
}

void Oracle::TimePassed() {
  for (auto& [id, key] : keys_) key.may_be_gone = true;
}

void Oracle::Accepted(const model::Operation& operation) {
  fences_[operation.id] = operation.fence.value;
}

void Oracle::Taken(const model::Operation& operation) {
  std::int64_t& fence = fences_[operation.id];
  if (operation.fence.value <= fence) {
    Break("fences_only_grow", fmt::format("operation {} was taken over with fence {} after {}",
                                          ToString(operation.id), operation.fence.value, fence));
  }
  fence = std::max(fence, operation.fence.value);
}

void Oracle::Recorded(const ports::Advance& advance, ports::AdvanceOutcome outcome) {
  if (outcome != ports::AdvanceOutcome::kRecorded) return;
  const std::int64_t fence = fences_[advance.lease.operation];
  if (advance.lease.fence.value < fence) {
    Break("a_stale_fence_writes_nothing",
          fmt::format("operation {}: fence {} recorded after {} was given",
                      ToString(advance.lease.operation), advance.lease.fence.value, fence));
  }
}

void Oracle::Renewed(std::span<const model::Lease> leases,
                     std::span<const model::OperationId> lost) {
  for (const model::Lease& lease : leases) {
    const std::int64_t fence = fences_[lease.operation];
    if (lease.fence.value >= fence) continue;
    if (std::ranges::find(lost, lease.operation) != lost.end()) continue;
    Break("a_lost_lease_is_told",
          fmt::format("operation {}: fence {} is renewed after {} was given",
                      ToString(lease.operation), lease.fence.value, fence));
  }
}

void Oracle::EffectTookPlace(const Effect& effect) {
  if (&effect.reached != effect.host.host.get()) {
    Break("a_host_is_who_it_says",
          fmt::format("{} leads to another machine, and {} is changed there", effect.host.id.value,
                      Short(effect.vm)));
  }
  if (effect.at >= effect.guard.Deadline()) {
    Break("an_effect_is_in_time", fmt::format("{}: {} is changed after its lease ran out",
                                              effect.host.id.value, Short(effect.vm)));
  }
  const auto domain = effect.reached.Find(effect.vm);
  std::optional<model::Label> label = domain ? domain->label : std::nullopt;
  const bool was_changed = changed_ == effect.vm && changed_turn_ == stage_.scheduler.turns();
  if (!domain && was_changed) label = label_before_;
  if (!label || label->ledger != stage_.ledger->Id() || label->fence <= effect.guard.fence) return;
  Break("a_stale_effect_is_refused",
        fmt::format("{}: {} is changed with fence {}, and its label has {}", effect.host.id.value,
                    Short(effect.vm), effect.guard.fence.value, label->fence.value));
}

void Oracle::Patched(const model::VmId& vm, std::optional<std::string> mark) {
  marks_[vm] = std::move(mark);
}

bool Oracle::IsUsable(const model::HostId& host) const {
  const auto hosts = stage_.ledger->Hosts();
  if (!hosts) return false;
  const auto row = std::ranges::find(*hosts, host, &model::Host::id);
  return row != hosts->end() && row->state != model::HostState::kDead && !row->is_returning;
}

void Oracle::HostChanged(const model::HostId& host, const model::VmId& vm,
                         const std::optional<hypervisor::SimulatedDomain>& before,
                         const std::optional<hypervisor::SimulatedDomain>& after) {
  changed_ = vm;
  changed_turn_ = stage_.scheduler.turns();
  label_before_ = before ? before->label : std::nullopt;
  if (hand_ == Hand::kMeddler) meddled_.insert(vm);
  if (hand_ != Hand::kOurs) return;
  stage_.Tell(host.value, "domain {}: {} -> {}", Short(vm),
              before ? ToString(before->power) : "absent",
              after ? ToString(after->power) : "absent");
  const bool is_strange =
      before && (!before->label || before->label->ledger != stage_.ledger->Id());
  if (is_strange) {
    Break("strangers_are_left_alone",
          fmt::format("{}: domain {} is not ours", host.value, before->name));
  }
  if (after && (!before || (!Runs(before) && Runs(after)))) CheckComing(host, *after);
}

void Oracle::CheckComing(const model::HostId& host, const hypervisor::SimulatedDomain& domain) {
  if (meddled_.contains(domain.id) || !IsUsable(host)) return;
  const auto row = stage_.ledger->GetVm(domain.id);
  if (!row) return;
  if (!row->has_value()) {
    if (was_restored_) return;
    return Break("a_row_precedes_its_machine", Short(domain.id) + " is there and has no row");
  }
  const model::Vm& vm = **row;
  if (vm.state == model::VmState::kDeleted) {
    return Break("no_resurrection",
                 fmt::format("{} was deleted and comes to be on {}", Short(domain.id), host.value));
  }
  const bool is_undone = vm.state == model::VmState::kFailed && !vm.host && !vm.holder;
  if (is_undone) {
    return Break("no_effect_is_left",
                 fmt::format("{} failed and comes to be on {}", Short(domain.id), host.value));
  }
  const auto here = std::ranges::find(stage_.machines, host, &Machine::id);
  if (!Runs(domain)) return;
  for (const Machine& other : stage_.machines) {
    if (other.host == here->host) continue;
    const auto twin = other.host->Find(domain.id);
    if (!Runs(twin) || !IsUsable(other.id)) continue;
    Break("one_machine",
          fmt::format("{} runs on {} and on {}", Short(domain.id), host.value, other.id.value));
  }
}

void Oracle::SeedOrdered(const ports::SeedOrder& order) {
  const auto row = stage_.ledger->GetVm(order.vm);
  if (!row || !row->has_value()) return;
  // A batch's names begin with the one that was asked for.
  const std::string wanted = UserDataFor((*row)->name);
  if (!order.user_data.empty() && wanted.starts_with(order.user_data)) return;
  Break("user_data_arrives", fmt::format("{} is seeded with '{}'", (*row)->name, order.user_data));
}

}  // namespace vmonce::sim
