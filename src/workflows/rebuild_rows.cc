#include "workflows/rebuild_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/intent.h"
#include "model/label.h"
#include "model/limits.h"
#include "model/network.h"

namespace vmonce::workflows {
namespace {

using model::Label;
using model::Observed;
using model::Vm;

constexpr std::string_view kFaceOfOld = "rest";  // The only one when labels had no origin.
constexpr int kCreateSteps = 6;                  // The cursor of an item that is done.

const Label& LabelOf(const FoundMachine& machine) { return *machine.seen.label; }

// A UUIDv7 begins with the time at which it was made (RFC 9562).
Time TimeOf(const Uuid& id, Time now) {
  if ((id.bytes[6] >> 4) != 7) return now;
  std::int64_t ms = 0;
  for (int i = 0; i < 6; ++i) ms = ms << 8 | id.bytes[static_cast<std::size_t>(i)];
  return std::min(FromUnixMs(ms), now);
}

int CountOf(std::span<const FoundMachine> machines) {
  int count = 1;
  for (const FoundMachine& machine : machines) {
    const Label& label = LabelOf(machine);
    count = std::max({count, label.index + 1, label.origin ? label.origin->count : 1});
  }
  return count;
}

model::VmSpec SpecOf(const FoundMachine& machine, const std::string& name) {
  const ports::DomainFacts& facts = machine.seen.facts;
  const model::Origin origin = LabelOf(machine).origin.value_or(model::Origin{});
  model::VmSpec spec;
  spec.image.id = origin.image_id;
  spec.image.name = origin.image.empty() ? "unknown" : origin.image;
  spec.image.kind = facts.kernel_path.empty() ? model::ImageKind::kDisk : model::ImageKind::kKernel;
  spec.image.disk_path = origin.disk_path;
  spec.image.disk_format = origin.disk_format;
  spec.image.kernel_path = facts.kernel_path;
  spec.image.initrd_path = facts.initrd_path;
  spec.image.cmdline = facts.cmdline;
  spec.cpus = std::max(facts.cpus, 1);
  spec.memory_mib = facts.memory_mib;
  spec.disk_gib = origin.disk_gib;
  spec.hostname = name;
  spec.network = facts.network.empty() ? std::string(model::kUserNetwork) : facts.network;
  for (const model::Forward& forward : facts.forwards) {
    spec.forwards.push_back({.guest_port = forward.guest_port,
                             .protocol = forward.protocol,
                             .host_port = 0,
                             .host_address = {}});
  }
  return spec;
}

// What is off stays off: a person may have stopped it. What never ran was about to.
model::Desired DesiredOf(const FoundMachine& machine, const RebuildMoment& moment) {
  if (machine.seen.power != Observed::kStopped) return model::Desired::kRunning;
  const auto& origin = LabelOf(machine).origin;
  if (!machine.was_started) return origin ? origin->desired : model::Desired::kRunning;
  return moment.run_stopped ? model::Desired::kRunning : model::Desired::kStopped;
}

Vm VmOf(const FoundMachine& machine, const RebuildMoment& moment) {
  const Label& label = LabelOf(machine);
  Vm vm;
  vm.id = machine.seen.id;
  vm.project = label.project;
  vm.name = label.origin && model::IsValidName(label.origin->name) ? label.origin->name
                                                                   : model::GeneratedName(vm.id);
  vm.operation = label.operation;
  vm.index = label.index;
  vm.spec = SpecOf(machine, vm.name);
  vm.mac = machine.seen.facts.mac.empty() ? model::MacAddress(vm.id) : machine.seen.facts.mac;
  vm.state = model::VmState::kReady;
  vm.desired = DesiredOf(machine, moment);
  vm.observed = machine.seen.power;
  vm.stopped_by = machine.seen.stopped_by;
  // What was about to run is started as what its host took down is.
  const bool is_due = vm.desired == model::Desired::kRunning && vm.observed == Observed::kStopped;
  if (is_due) vm.stopped_by = model::StopCause::kHost;
  if (label.origin) vm.restart = label.origin->restart;
  vm.host = machine.host;
  vm.forwards = machine.seen.facts.forwards;
  vm.addresses = machine.seen.addresses;
  vm.created = TimeOf(vm.id.value, moment.now);
  return vm;
}

// "web-2" of a batch is one of "web-0" … .
std::string NameOfIndex(const Vm& sibling, int index, const model::VmId& id) {
  const std::string end = fmt::format("-{}", sibling.index);
  if (!sibling.name.ends_with(end)) return model::GeneratedName(id);
  return fmt::format("{}-{}", sibling.name.substr(0, sibling.name.size() - end.size()), index);
}

model::Failure NotFound() {
  return {"vm_missing",
          "no host had this machine when the ledger was rebuilt: it was never made, or was deleted "
          "before. It is not made again",
          false};
}

Vm GoneVm(const Vm& sibling, int index, const RebuildMoment& moment) {
  Vm vm;
  vm.id = moment.new_id();
  vm.project = sibling.project;
  vm.name = NameOfIndex(sibling, index, vm.id);
  vm.operation = sibling.operation;
  vm.index = index;
  vm.spec = sibling.spec;
  vm.spec.hostname = vm.name;
  vm.mac = model::MacAddress(vm.id);
  vm.state = model::VmState::kDeleted;
  vm.desired = model::Desired::kStopped;
  vm.observed = Observed::kAbsent;
  vm.holds_reservation = false;
  vm.failure = NotFound();
  vm.created = sibling.created;
  vm.deleted = moment.now;
  return vm;
}

model::Item ItemOf(const Vm& vm) {
  model::Item item;
  item.index = vm.index;
  item.subject = vm.id.value;
  item.look_first = false;
  const bool is_gone = vm.state == model::VmState::kDeleted;
  item.phase = is_gone ? model::ItemPhase::kCancelled : model::ItemPhase::kDone;
  item.step = is_gone ? 0 : kCreateSteps;
  if (is_gone) item.failure = vm.failure;
  return item;
}

model::Operation OperationOf(std::span<const FoundMachine> machines, const RebuildMoment& moment) {
  const Label& label = LabelOf(machines.front());
  const model::Origin origin = label.origin.value_or(model::Origin{});
  model::Operation operation;
  operation.id = label.operation;
  operation.sequence = label.sequence;
  operation.project = label.project;
  operation.kind = model::OperationKind::kCreate;
  operation.state = model::OperationState::kSucceeded;
  operation.key_hash = ParseDigest(label.key_hash);
  operation.fingerprint = ParseDigest(label.fingerprint).value_or(Digest{});
  operation.fingerprint_version = origin.fingerprint_version;
  operation.face = origin.face.empty() ? std::string(kFaceOfOld) : origin.face;
  for (const FoundMachine& machine : machines) RaiseFence(LabelOf(machine), operation);
  operation.accepted = TimeOf(operation.id.value, moment.now);
  operation.due = operation.accepted;
  operation.finished = moment.now;
  return operation;
}

}  // namespace

std::optional<std::string> WhyNotTogether(std::span<const FoundMachine> machines) {
  const Label& first = LabelOf(machines.front());
  std::vector<bool> is_seen(model::limits::kBatchCount, false);
  for (const FoundMachine& machine : machines) {
    const Label& label = LabelOf(machine);
    if (CountOf(std::span(&machine, 1)) > model::limits::kBatchCount) {
      return "a label counts more machines than a batch has";
    }
    if (label.key_hash != first.key_hash || label.fingerprint != first.fingerprint ||
        label.project != first.project || label.sequence != first.sequence) {
      return "their labels contradict each other";
    }
    const auto index = static_cast<std::size_t>(label.index);
    if (is_seen[index]) return fmt::format("two machines are its index {}", index);
    is_seen[index] = true;
  }
  return std::nullopt;
}

ports::RebuiltOperation NewRows(std::span<const FoundMachine> machines,
                                const RebuildMoment& moment) {
  CHECK(!machines.empty());
  ports::RebuiltOperation rows;
  rows.operation = OperationOf(machines, moment);
  for (const FoundMachine& machine : machines) rows.vms.push_back(VmOf(machine, moment));
  const Vm sibling = rows.vms.front();
  const int count = CountOf(machines);
  for (int index = 0; index < count; ++index) {
    if (std::ranges::find(rows.vms, index, &Vm::index) == rows.vms.end()) {
      rows.vms.push_back(GoneVm(sibling, index, moment));
    }
  }
  std::ranges::sort(rows.vms, {}, &Vm::index);
  for (const Vm& vm : rows.vms) rows.operation.items.push_back(ItemOf(vm));
  const auto gone = static_cast<std::size_t>(count) - machines.size();
  rows.detail = "rebuilt from the labels on the hosts";
  if (gone > 0) rows.detail += fmt::format("; {} of {} machines were not found", gone, count);
  return rows;
}

bool WentOn(const model::Operation& operation, const model::Label& label) {
  return label.fence > EffectFence(operation.sequence, operation.fence);
}

void RaiseFence(const model::Label& label, model::Operation& operation) {
  const std::int64_t needed =
      label.fence.value - EffectFence(operation.sequence, model::Fence{}).value;
  operation.fence.value = std::max(operation.fence.value, needed);
}

void MoveTo(const FoundMachine& machine, model::Vm& vm) {
  vm.host = machine.host;
  const auto& forwards = machine.seen.facts.forwards;
  if (forwards.size() == vm.spec.forwards.size()) vm.forwards = forwards;
}

void HandBack(const FoundMachine& machine, Time now, model::Operation& operation, model::Item& item,
              model::Vm& vm) {
  item.phase = model::ItemPhase::kForward;
  item.step = item.failures = item.blind_looks = 0;
  item.look_first = true;
  item.not_before = item.unsettled_until = Time{};
  item.memo.clear();
  item.failure.reset();
  MoveTo(machine, vm);
  vm.state = model::VmState::kCreating;
  vm.holder = operation.id;
  vm.holds_reservation = true;
  vm.failure.reset();
  RaiseFence(*machine.seen.label, operation);
  if (IsFinished(operation.state)) {
    operation.state = model::OperationState::kAccepted;
    ++operation.attempt;
  }
  operation.finished.reset();
  operation.failure.reset();
  operation.is_stuck = false;
  operation.lease_owner = std::string(model::kUnleased);
  operation.lease_until = Time{};
  operation.due = now;
}

void GiveUp(model::Item& item, model::Vm& vm) {
  item.phase = model::ItemPhase::kFailed;
  item.failure = model::Failure{
      "vm_missing",
      "this create was under way when the copy of the ledger was made, and no host had its machine "
      "when the ledger was rebuilt: it may have been made and deleted since. It is not made again; "
      "use a new key",
      false};
  vm.state = model::VmState::kFailed;
  vm.observed = Observed::kUnknown;
  vm.failure = item.failure;
  vm.host.reset();
  vm.forwards.clear();
  vm.forward_moves = 0;
  vm.holder.reset();
  vm.holds_reservation = false;
}

void EndIfAllHave(Time now, model::Operation& operation) {
  bool has_done = false;
  std::optional<model::Failure> failure;
  for (const model::Item& item : operation.items) {
    if (!IsEnded(item.phase)) return;
    has_done = has_done || item.phase == model::ItemPhase::kDone;
    if (item.phase == model::ItemPhase::kFailed && (!failure || item.failure->passing)) {
      failure = item.failure;
    }
  }
  operation.state = failure    ? model::OperationState::kFailed
                    : has_done ? model::OperationState::kSucceeded
                               : model::OperationState::kCancelled;
  if (!failure || !failure->passing) operation.sealed_secrets.clear();
  operation.failure = failure;
  operation.finished = operation.due = now;
  operation.lease_owner = std::string(model::kUnleased);
  operation.lease_until = Time{};
}

}  // namespace vmonce::workflows
