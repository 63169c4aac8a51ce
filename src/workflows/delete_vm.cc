#include "workflows/delete_vm.h"

namespace vmonce::workflows {
namespace {

using engine::StepContext;
using engine::StepResult;
using model::Vm;

class DeleteVm {
 public:
  explicit DeleteVm(const WorkflowParts& parts) : parts_(parts) {}

  StepResult Destroy(const StepContext& context) const;
  StepResult Undefine(const StepContext& context) const;
  StepResult DeleteSeed(const StepContext& context) const;
  StepResult DeleteDisk(const StepContext& context) const;
  StepResult Verify(const StepContext& context) const;
  StepResult Publish(const StepContext& context) const;

  // When nothing that was ordered and not answered can take effect any more.
  Result<Time> SettledAt(const StepContext& context) const;

  const WorkflowParts& parts() const { return parts_; }

 private:
  // Runs `call` on the VM's host. Done at once when the VM never had one, or when an operator
  // declared it dead: what reappears there is an orphan. Something that is not ours (kConflict) is
  // left alone.
  template <typename Call>
  StepResult OnHost(const StepContext& context, Call call) const;

  const WorkflowParts& parts_;
};

}  // namespace

engine::Saga DeleteVmSaga(const WorkflowParts& parts) {
  const DeleteVm remove(parts);
  using Context = const StepContext&;
  engine::Saga saga;
  saga.kind = model::OperationKind::kDelete;
  saga.may_fail = false;
  const auto step = [remove](StepResult (DeleteVm::*method)(Context) const) {
    return [remove, method](Context context) { return (remove.*method)(context); };
  };
  saga.steps = {
      {"hold", Hold, nullptr},
      {"stop", step(&DeleteVm::Destroy), nullptr},
      {"undefine", step(&DeleteVm::Undefine), nullptr},
      {"seed", step(&DeleteVm::DeleteSeed), nullptr},
      {"disk", step(&DeleteVm::DeleteDisk), nullptr},
      {"verify", step(&DeleteVm::Verify), nullptr},
      {"publish", step(&DeleteVm::Publish), nullptr},
  };
  saga.is_settled = [remove](Context c) { return IsSettled(remove.parts(), c); };
  saga.on_finished = [remove](const model::Operation& operation) {
    return std::vector{OperationEvent(remove.parts(), operation)};
  };
  return saga;
}

namespace {

StepResult DeleteVm::Destroy(const StepContext& context) const {
  return OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.Destroy(vm.id, GuardOf(context));
  });
}

StepResult DeleteVm::Undefine(const StepContext& context) const {
  return OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.Undefine(vm.id, GuardOf(context));
  });
}

StepResult DeleteVm::DeleteSeed(const StepContext& context) const {
  return OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.DeleteSeed(vm.id, GuardOf(context));
  });
}

StepResult DeleteVm::DeleteDisk(const StepContext& context) const {
  return OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) {
    return host.DeleteDisk(vm.id, GuardOf(context));
  });
}

// Absence is a typed not-found, after every earlier call has returned and, where its answer was
// lost, after the settle time. What was removed before may be there again by then, a disk without a
// machine as well: whatever this operation removed earlier than that is removed once more.
StepResult DeleteVm::Verify(const StepContext& context) const {
  const Result<Time> settled = SettledAt(context);
  if (!settled) return StepResult::From(settled.error());
  const bool is_waiting = context.now < *settled;
  if (is_waiting || !IsSettled(parts_, context)) {
    return StepResult::Again(std::max(parts_.settings.observe_every, *settled - context.now), {},
                             is_waiting ? "an earlier call may still take effect" : "");
  }
  const bool removed_early = context.operation.accepted < *settled;
  StepResult result = OnHost(context, [&](ports::Hypervisor& host, const Vm& vm) -> Status {
    const Result<std::optional<ports::DomainSighting>> seen = host.Look(vm.id);
    if (!seen) return std::unexpected(seen.error());
    if (seen->has_value() && IsOurs(parts_, **seen, vm)) {
      return Fail(ErrorCode::kUnknown, "the domain is there again");
    }
    if (!removed_early) return {};
    const Status seed = host.DeleteSeed(vm.id, GuardOf(context));
    return seed ? host.DeleteDisk(vm.id, GuardOf(context)) : seed;
  });
  if (result.kind == StepResult::Kind::kUnknown) result.kind = StepResult::Kind::kRewind;
  return result;
}

// Of whatever operation the order was: the VM's row knows. On a dead host nothing is waited for.
Result<Time> DeleteVm::SettledAt(const StepContext& context) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return std::unexpected(vm.error());
  const Result<bool> is_dead = IsOnDeadHost(parts_, *vm);
  if (!is_dead) return std::unexpected(is_dead.error());
  if (*is_dead) return Time{};
  return std::max(context.item.unsettled_until, vm->unsettled_until);
}

StepResult DeleteVm::Publish(const StepContext& context) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return StepResult::From(vm.error());
  StepResult result = StepResult::Done();
  ports::VmChange change;
  change.vm = vm->id;
  change.state = model::VmState::kDeleted;
  change.observed = model::Observed::kAbsent;
  change.release_host = true;
  change.release_reservation = true;
  change.release_hold = true;
  result.changes.push_back(std::move(change));
  result.events.push_back(VmEvent(parts_, "vm.deleted", *vm, context.operation.id));
  return result;
}

template <typename Call>
StepResult DeleteVm::OnHost(const StepContext& context, Call call) const {
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
  if (done) return StepResult::Done();
  if (done.error().code == ErrorCode::kConflict) {
    // Undefine says so of a machine that still runs, too: verify finds it and starts over.
    return StepResult::Done("left alone: " + done.error().detail);
  }
  // Every effect here converges, so an unknown outcome is simply tried again.
  return StepResult::From(done.error());
}

}  // namespace
}  // namespace vmonce::workflows
