#include "workflows/parts.h"

#include "base/json_writer.h"

namespace vmonce::workflows {

model::VmId SubjectOf(const engine::StepContext& context) { return {context.item.subject}; }

Result<model::Vm> LoadVm(const WorkflowParts& parts, const engine::StepContext& context) {
  if (auto* seen = std::any_cast<model::Vm>(&context.seen)) return *seen;
  Result<std::optional<model::Vm>> vm = parts.ledger.GetVm(SubjectOf(context));
  // Nothing outside has happened when the ledger cannot be read.
  if (!vm) return Fail(ErrorCode::kUnavailable, "the ledger: " + vm.error().detail);
  if (!vm->has_value()) {
    return Fail(ErrorCode::kInternal, "no row for the VM " + ToString(SubjectOf(context)));
  }
  return std::move(**vm);
}

Result<ports::Hypervisor*> HostOf(const WorkflowParts& parts, const model::Vm& vm) {
  if (!vm.host) return Fail(ErrorCode::kInternal, "the VM has no host yet");
  ports::Hypervisor* hypervisor = parts.fleet.Find(*vm.host);
  if (hypervisor == nullptr) {
    return Fail(ErrorCode::kUnavailable,
                "host " + vm.host->value + " is not in the configuration any more");
  }
  const Result<bool> is_dead = IsOnDeadHost(parts, vm);
  if (!is_dead) return std::unexpected(is_dead.error());
  if (*is_dead) {
    return Fail(ErrorCode::kUnavailable, "host " + vm.host->value + " is declared dead");
  }
  if (!parts.fleet.MayAct(*vm.host)) {
    return Fail(ErrorCode::kUnavailable,
                "host " + vm.host->value +
                    " was not found yet to be as the ledger has it: nothing is done there before");
  }
  return hypervisor;
}

Result<bool> IsOnDeadHost(const WorkflowParts& parts, const model::Vm& vm) {
  if (!vm.host) return false;
  return parts.fleet.IsDead(*vm.host);
}

std::optional<engine::StepResult> AwaitHost(const WorkflowParts& parts, const model::Vm& vm) {
  if (!vm.host) return std::nullopt;
  if (!parts.fleet.HasBeenTried(*vm.host)) {
    return engine::StepResult::Again(parts.settings.observe_every);
  }
  // What an older copy of the ledger wants done may be done, or undone, long since.
  if (parts.fleet.Age() == LedgerAge::kBehind) {
    return engine::StepResult::Again(parts.settings.ask_again, {}, "the ledger is an older copy");
  }
  return std::nullopt;
}

model::Fence FenceOf(const engine::StepContext& context) {
  return model::EffectFence(context.operation.sequence, context.lease.fence());
}

ports::EffectGuard GuardOf(const engine::StepContext& context) {
  return {FenceOf(context), context.lease.deadline(), context.lease.live_deadline()};
}

model::Event VmEvent(const WorkflowParts& parts, std::string_view type, const model::Vm& vm,
                     const model::OperationId& operation) {
  model::Event event;
  JsonWriter data(event.data);
  data.BeginObject();
  data.Member("vm", ToString(vm.id));
  data.Member("name", vm.name);
  data.Member("operation", ToString(operation));
  if (vm.host) data.Member("host", vm.host->value);
  data.EndObject();
  event.id = NewUuidV7(parts.clock, parts.random);
  event.type = type;
  event.project = vm.project;
  event.subject = ToString(vm.id);
  return event;
}

model::Event OperationEvent(const WorkflowParts& parts, const model::Operation& operation) {
  model::Event event;
  JsonWriter data(event.data);
  data.BeginObject();
  data.Member("operation", ToString(operation.id));
  data.Member("kind", ToString(operation.kind));
  data.Member("state", ToString(operation.state));
  data.Member("attempt", operation.attempt);
  if (operation.failure) data.Member("code", operation.failure->code);
  data.EndObject();
  event.id = NewUuidV7(parts.clock, parts.random);
  event.type = "operation." + std::string(ToString(operation.state));
  event.project = operation.project;
  event.subject = ToString(operation.id);
  return event;
}

bool IsOurs(const WorkflowParts& parts, const ports::DomainSighting& seen, const model::Vm& vm) {
  return seen.label && seen.label->ledger == parts.ledger.Id() &&
         seen.label->operation == vm.operation && seen.label->index == vm.index;
}

bool IsSettled(const WorkflowParts& parts, const engine::StepContext& context) {
  const Result<model::Vm> vm = LoadVm(parts, context);
  if (!vm) return false;
  if (!vm->host) return true;
  if (const Result<bool> is_dead = IsOnDeadHost(parts, *vm); !is_dead || *is_dead) {
    return is_dead.has_value();
  }
  const ports::Hypervisor* hypervisor = parts.fleet.Find(*vm->host);
  return hypervisor == nullptr || hypervisor->CallsOut(vm->id) == 0;
}

Result<bool> IsMarked(const WorkflowParts& parts, const engine::StepContext& context) {
  Result<model::Vm> vm = LoadVm(parts, context);
  if (!vm) return std::unexpected(vm.error());
  const bool is_marked = vm->delete_operation && *vm->delete_operation != context.operation.id;
  context.seen = std::move(*vm);
  return is_marked;
}

engine::StepResult Hold(const engine::StepContext& context) {
  engine::StepResult result = engine::StepResult::Done();
  ports::VmChange change;
  change.vm = SubjectOf(context);
  change.take_hold = true;
  result.changes.push_back(std::move(change));
  return result;
}

}  // namespace vmonce::workflows
