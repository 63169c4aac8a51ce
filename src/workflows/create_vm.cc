#include "workflows/create_vm.h"

#include <fmt/format.h>

#include "base/check.h"
#include "model/label.h"
#include "workflows/placing.h"

namespace vmonce::workflows {
namespace {

using engine::Closing;
using engine::LookResult;
using engine::StepContext;
using engine::StepResult;
using model::Vm;

// The cursor's meaning: the order of the table below.
enum StepIndex { kPlace, kDisk, kSeed, kDefine, kStart, kPublish };

class CreateVm {
 public:
  explicit CreateVm(const WorkflowParts& parts) : parts_(parts) {}

  // What is already there on the recorded host, found by UUID and label.
  LookResult Look(const StepContext& context) const;

  StepResult Place(const StepContext& context) const;
  StepResult Unplace(const StepContext& context) const;
  StepResult CreateDisk(const StepContext& context) const;
  StepResult DeleteDisk(const StepContext& context) const;
  StepResult CreateSeed(const StepContext& context) const;
  StepResult DeleteSeed(const StepContext& context) const;
  StepResult Define(const StepContext& context) const;
  StepResult Undefine(const StepContext& context) const;
  StepResult Start(const StepContext& context) const;
  StepResult StayOff(const StepContext& context) const;
  StepResult Destroy(const StepContext& context) const;
  StepResult Publish(const StepContext& context) const;

  Closing OnFailed(const StepContext& context, const model::Failure& failure) const;
  Closing OnCancelled(const StepContext& context) const;

  const WorkflowParts& parts() const { return parts_; }

 private:
  // Runs `call` on the VM's host.
  template <typename Call>
  StepResult OnHost(const StepContext& context, Call call) const;
  // The same for an undo: what is not ours, or has no host, needs no taking back.
  template <typename Call>
  StepResult UndoOnHost(const StepContext& context, Call call) const;
  Result<std::string> UserData(const StepContext& context) const;
  model::Label LabelOf(const StepContext& context, const Vm& vm) const;

  const WorkflowParts& parts_;
};

}  // namespace

engine::Saga CreateVmSaga(const WorkflowParts& parts) {
  const CreateVm create(parts);
  using Context = const StepContext&;
  engine::Saga saga;
  saga.kind = model::OperationKind::kCreate;
  const auto step = [create](StepResult (CreateVm::*method)(Context) const) {
    return [create, method](Context context) { return (create.*method)(context); };
  };
  saga.steps = {
      {"place", step(&CreateVm::Place), step(&CreateVm::Unplace)},
      {"disk", step(&CreateVm::CreateDisk), step(&CreateVm::DeleteDisk)},
      {"seed", step(&CreateVm::CreateSeed), step(&CreateVm::DeleteSeed)},
      {"define", step(&CreateVm::Define), step(&CreateVm::Undefine)},
      {"start", step(&CreateVm::Start), step(&CreateVm::Destroy)},
      {"publish", step(&CreateVm::Publish), nullptr},
  };
  saga.look = [create](Context c) { return create.Look(c); };
  saga.is_marked = [create](Context c) { return IsMarked(create.parts(), c); };
  saga.is_settled = [create](Context c) { return IsSettled(create.parts(), c); };
  saga.on_failed = [create](Context c, const model::Failure& f) { return create.OnFailed(c, f); };
  saga.on_cancelled = [create](Context c) { return create.OnCancelled(c); };
  saga.on_finished = [create](const model::Operation& operation) {
    return std::vector{OperationEvent(create.parts(), operation)};
  };
  return saga;
}

namespace {

// Back to the placing: the machine is made on another host.
StepResult Elsewhere(const Vm& vm) {
  StepResult result;
  result.kind = StepResult::Kind::kRewind;
  result.detail = "host " + vm.host->value + " is declared dead";
  return result;
}

LookResult CreateVm::Look(const StepContext& context) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return {LookResult::Kind::kNoAnswer, 0, vm.error().detail};
  if (!vm->host) return {LookResult::Kind::kGoOn, kPlace, "nothing was placed yet"};

  const Result<bool> is_dead = IsOnDeadHost(parts_, *vm);
  if (is_dead && *is_dead) {
    return {LookResult::Kind::kGoOn, kPlace, "host " + vm->host->value + " is declared dead"};
  }
  const Result<ports::Hypervisor*> host = HostOf(parts_, *vm);
  if (!host) return {LookResult::Kind::kNoAnswer, 0, host.error().detail};
  const Result<std::optional<ports::DomainSighting>> seen = (*host)->Look(vm->id);
  if (!seen) return {LookResult::Kind::kNoAnswer, 0, seen.error().detail};
  // Going forward on the same host needs no proof of absence: every effect there converges.
  if (!seen->has_value()) return {LookResult::Kind::kGoOn, kDisk, "no such domain on the host"};

  const ports::DomainSighting& domain = **seen;
  if (!IsOurs(parts_, domain, *vm)) {
    return {
        LookResult::Kind::kConflict, 0,
        fmt::format("host {} has a domain '{}' of this UUID that is not ours; it was not touched",
                    vm->host->value, domain.name)};
  }
  if (domain.label->fence > FenceOf(context)) {
    return {LookResult::Kind::kFenced, 0, "the domain's label carries a higher fence"};
  }
  const Status stamped = (*host)->StampFence(vm->id, GuardOf(context));
  if (!stamped) {
    const bool is_fenced = stamped.error().code == ErrorCode::kFenced;
    return {is_fenced ? LookResult::Kind::kFenced : LookResult::Kind::kNoAnswer, 0,
            stamped.error().detail};
  }
  const bool is_wanted_off = vm->desired == model::Desired::kStopped;
  if (domain.power == model::Observed::kRunning && !is_wanted_off) {
    return {LookResult::Kind::kGoOn, kPublish, "adopted: the domain is there and runs"};
  }
  // Defining again converges, and also makes sure of disk and seed that a person may have removed.
  return {LookResult::Kind::kGoOn, kDisk,
          is_wanted_off ? "adopted: the domain is there"
                        : "adopted: the domain is there and does not run"};
}

StepResult CreateVm::Place(const StepContext& context) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return StepResult::From(vm.error());
  StepResult result = StepResult::Done();
  ports::VmChange change;
  change.vm = vm->id;
  change.state = model::VmState::kCreating;
  const Result<bool> is_dead = IsOnDeadHost(parts_, *vm);
  if (!is_dead) return StepResult::From(is_dead.error());
  // Another host is chosen only after a proven absence (the undo forgets the host), or after an
  // operator declared the first one dead.
  if (!vm->host || *is_dead) {
    if (std::optional<StepResult> not_yet = ChooseHost(parts_, *vm, change.place_on)) {
      return std::move(*not_yet);
    }
    result.detail = "on host " + change.place_on->value;
    if (vm->host) result.detail += ", since " + vm->host->value + " is declared dead";
  }
  if (std::optional<StepResult> not_yet = PlanPorts(parts_, *vm, change)) {
    return std::move(*not_yet);
  }
  result.changes.push_back(std::move(change));
  return result;
}

// Absence is believed only as a typed not-found with no call out (the engine waits for that before
// any undo). What turned up meanwhile sends the undo back to its start.
StepResult CreateVm::Unplace(const StepContext& context) const {
  StepResult result = UndoOnHost(context, [&](ports::Hypervisor& host, const Vm& vm) -> Status {
    const Result<std::optional<ports::DomainSighting>> seen = host.Look(vm.id);
    if (!seen) return std::unexpected(seen.error());
    if (!seen->has_value() || !IsOurs(parts_, **seen, vm)) return {};
    return Fail(ErrorCode::kUnknown, "the domain turned up again");
  });
  if (result.kind == StepResult::Kind::kUnknown) result.kind = StepResult::Kind::kRewind;
  if (result.kind != StepResult::Kind::kDone) return result;
  ports::VmChange change;
  change.vm = SubjectOf(context);
  change.release_host = true;
  result.changes.push_back(std::move(change));
  return result;
}

StepResult CreateVm::CreateDisk(const StepContext& context) const {
  return OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) -> Status {
    const bool is_blank = !vm.spec.image.HasDisk();
    if (is_blank && vm.spec.disk_gib == 0) return {};
    ports::DiskOrder order;
    order.vm = vm.id;
    order.name = model::DiskName(parts_.ledger.Id(), vm.id);
    order.base_path = vm.spec.image.disk_path;
    order.base_format = vm.spec.image.disk_format;
    order.size_gib = vm.spec.disk_gib;
    return host.CreateDisk(order, GuardOf(context));
  });
}

StepResult CreateVm::DeleteDisk(const StepContext& context) const {
  return UndoOnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.DeleteDisk(vm.id, GuardOf(context));
  });
}

StepResult CreateVm::CreateSeed(const StepContext& context) const {
  const Result<std::string> user_data = UserData(context);
  if (!user_data) return StepResult::Refused("internal", user_data.error().detail);
  return OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    ports::SeedOrder order;
    order.vm = vm.id;
    order.name = model::SeedName(parts_.ledger.Id(), vm.id);
    order.instance_id = ToString(vm.id);
    order.hostname = vm.spec.hostname;
    order.ssh_keys = vm.spec.ssh_keys;
    order.user_data = *user_data;
    return host.CreateSeed(order, GuardOf(context));
  });
}

StepResult CreateVm::DeleteSeed(const StepContext& context) const {
  return UndoOnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.DeleteSeed(vm.id, GuardOf(context));
  });
}

StepResult CreateVm::Define(const StepContext& context) const {
  return OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    ports::DomainOrder order;
    order.vm = vm.id;
    order.name = model::DomainName(parts_.ledger.Id(), vm.id);
    order.label = LabelOf(context, vm);
    order.spec = vm.spec;
    order.mac = vm.mac;
    if (vm.spec.image.HasDisk() || vm.spec.disk_gib > 0) {
      order.disk_name = model::DiskName(parts_.ledger.Id(), vm.id);
    }
    order.seed_name = model::SeedName(parts_.ledger.Id(), vm.id);
    order.forwards = vm.forwards;
    return host.Define(order, GuardOf(context));
  });
}

StepResult CreateVm::Undefine(const StepContext& context) const {
  return UndoOnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.Undefine(vm.id, GuardOf(context));
  });
}

StepResult CreateVm::Start(const StepContext& context) const {
  const Result<Vm> row = LoadVm(parts_, context);
  if (!row) return StepResult::From(row.error());
  if (row->desired == model::Desired::kStopped) return StayOff(context);
  StepResult result = OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    Status started = host.Start(vm.id, GuardOf(context));
    // The domain that was defined a moment ago is gone: somebody removed it. Looking tells where to
    // go on.
    if (!started && started.error().code == ErrorCode::kNotFound)
      started.error().code = ErrorCode::kUnknown;
    return started;
  });
  if (result.kind != StepResult::Kind::kUnavailable) return result;
  return AfterFailedStart(parts_, context).value_or(result);
}

// What was asked to be off is defined and looked at; the record says how it was found.
StepResult CreateVm::StayOff(const StepContext& context) const {
  model::Observed seen_power = model::Observed::kUnknown;
  StepResult result = OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) -> Status {
    const Result<std::optional<ports::DomainSighting>> seen = host.Look(vm.id);
    if (!seen) return std::unexpected(seen.error());
    if (!seen->has_value() || !IsOurs(parts_, **seen, vm)) {
      return Fail(ErrorCode::kUnknown, "the domain is not to be seen");
    }
    seen_power = (*seen)->power;
    return {};
  });
  if (result.kind != StepResult::Kind::kDone) return result;
  result.detail = "stays off, as asked";
  ports::VmChange change;
  change.vm = SubjectOf(context);
  change.observed = seen_power;
  result.changes.push_back(std::move(change));
  return result;
}

StepResult CreateVm::Destroy(const StepContext& context) const {
  return UndoOnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.Destroy(vm.id, GuardOf(context));
  });
}

StepResult CreateVm::Publish(const StepContext& context) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return StepResult::From(vm.error());
  const Result<bool> is_dead = IsOnDeadHost(parts_, *vm);
  if (!is_dead) return StepResult::From(is_dead.error());
  if (*is_dead) return Elsewhere(*vm);
  StepResult result = StepResult::Done();
  ports::VmChange change;
  change.vm = vm->id;
  change.state = model::VmState::kReady;
  if (vm->desired == model::Desired::kRunning) change.observed = model::Observed::kRunning;
  change.release_hold = true;
  change.clear_failure = true;
  result.changes.push_back(std::move(change));
  result.events.push_back(VmEvent(parts_, "vm.ready", *vm, context.operation.id));
  return result;
}

Closing CreateVm::OnFailed(const StepContext& context, const model::Failure& failure) const {
  Closing closing;
  // A VM that never left `pending` fails by way of `creating`, as every other.
  ports::VmChange begun;
  begun.vm = SubjectOf(context);
  begun.state = model::VmState::kCreating;
  closing.changes.push_back(std::move(begun));
  ports::VmChange change;
  change.vm = SubjectOf(context);
  change.state = model::VmState::kFailed;
  change.failure = failure;
  change.release_reservation = true;
  change.release_hold = true;
  closing.changes.push_back(std::move(change));
  if (const Result<Vm> vm = LoadVm(parts_, context)) {
    closing.events.push_back(VmEvent(parts_, "vm.failed", *vm, context.operation.id));
  }
  return closing;
}

Closing CreateVm::OnCancelled(const StepContext& context) const {
  Closing closing;
  ports::VmChange change;
  change.vm = SubjectOf(context);
  change.release_hold = true;
  closing.changes.push_back(std::move(change));
  return closing;
}

template <typename Call>
StepResult CreateVm::OnHost(const StepContext& context, Call call) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return StepResult::From(vm.error());
  const Result<bool> is_dead = IsOnDeadHost(parts_, *vm);
  if (!is_dead) return StepResult::From(is_dead.error());
  if (*is_dead) return Elsewhere(*vm);
  if (std::optional<StepResult> wait = AwaitHost(parts_, *vm)) return std::move(*wait);
  const Result<ports::Hypervisor*> host = HostOf(parts_, *vm);
  if (!host) return StepResult::From(host.error());
  const Status done = call(**host, *vm);
  if (done) return StepResult::Done();
  // Only calls that read the image say so. A person may put the file back.
  if (done.error().code == ErrorCode::kNotFound) {
    return StepResult::Unavailable("image_unavailable", done.error().detail);
  }
  return StepResult::From(done.error());
}

template <typename Call>
StepResult CreateVm::UndoOnHost(const StepContext& context, Call call) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return StepResult::From(vm.error());
  if (!vm->host) return StepResult::Done("it was never placed");
  const Result<bool> is_dead = IsOnDeadHost(parts_, *vm);
  if (!is_dead) return StepResult::From(is_dead.error());
  if (*is_dead) return StepResult::Done("its host is declared dead");
  if (std::optional<StepResult> wait = AwaitHost(parts_, *vm)) return std::move(*wait);
  const Result<ports::Hypervisor*> host = HostOf(parts_, *vm);
  if (!host) return StepResult::From(host.error());
  const Status done = call(**host, *vm);
  if (done || done.error().code == ErrorCode::kConflict) return StepResult::Done();
  return StepResult::From(done.error());
}

Result<std::string> CreateVm::UserData(const StepContext& context) const {
  if (context.operation.sealed_secrets.empty()) return std::string();
  return parts_.sealer.Open(context.operation.sealed_secrets, ToString(context.operation.id));
}

model::Label CreateVm::LabelOf(const StepContext& context, const Vm& vm) const {
  const model::Operation& operation = context.operation;
  model::Label label;
  label.ledger = parts_.ledger.Id();
  label.host = *vm.host;
  label.project = vm.project;
  if (operation.key_hash) label.key_hash = ToHex(*operation.key_hash);
  label.fingerprint = ToHex(operation.fingerprint);
  label.operation = operation.id;
  label.index = vm.index;
  label.fence = FenceOf(context);
  label.sequence = operation.sequence;
  label.origin = model::Origin{.name = vm.name,
                               .count = static_cast<int>(operation.items.size()),
                               .desired = vm.desired,
                               .restart = vm.restart,
                               .face = operation.face,
                               .fingerprint_version = operation.fingerprint_version,
                               .disk_gib = vm.spec.disk_gib,
                               .image_id = vm.spec.image.id,
                               .image = vm.spec.image.name,
                               .disk_path = vm.spec.image.disk_path,
                               .disk_format = vm.spec.image.disk_format};
  return label;
}

}  // namespace
}  // namespace vmonce::workflows
