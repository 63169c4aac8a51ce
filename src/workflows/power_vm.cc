#include "workflows/power_vm.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>

#include "base/json.h"
#include "workflows/placing.h"

namespace vmonce::workflows {
namespace {

using engine::LookResult;
using engine::StepContext;
using engine::StepResult;
using model::Vm;

// The cursor's meaning: the order of the table below.
enum StepIndex { kHold, kEffect, kPublish };

class PowerVm {
 public:
  explicit PowerVm(const WorkflowParts& parts) : parts_(parts) {}

  // What an earlier try did, where its answer was lost: found by the machine's power. A reboot
  // leaves no trace.
  LookResult Look(const StepContext& context, std::optional<model::Observed> done) const;
  // Waits before for what an earlier operation on the machine ordered and was not told of: it would
  // undo this one's effect when it came.
  StepResult HoldWhenSettled(const StepContext& context) const;
  StepResult Start(const StepContext& context) const;
  StepResult Stop(const StepContext& context) const;
  StepResult Reboot(const StepContext& context) const;
  StepResult Publish(const StepContext& context, model::Observed observed) const;

  // The saga of `kind` with `effect` between hold and publish.
  engine::Saga Saga(model::OperationKind kind, engine::Step effect, model::Observed after) const;

 private:
  struct Target {
    Vm vm;
    ports::Hypervisor* host;
  };
  Result<Target> Find(const StepContext& context) const;
  static StepResult PowerOff(ports::Hypervisor& host, const StepContext& context);
  // kNotFound means the machine is missing: told, never re-created.
  static StepResult From(const Status& status);

  const WorkflowParts& parts_;
};

// The memo of a stop: when the guest was asked first and last.
struct Asked {
  Time first{};
  Time last{};
};

std::string Memo(const Asked& asked) {
  return fmt::format("{} {}", ToUnixMs(asked.first), ToUnixMs(asked.last));
}

std::optional<Asked> ParseAsked(std::string_view memo) {
  const std::size_t space = memo.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view parts[] = {memo.substr(0, space), memo.substr(space + 1)};
  std::int64_t times[] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto parsed = std::from_chars(parts[i].data(), end, times[i]);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  }
  return Asked{FromUnixMs(times[0]), FromUnixMs(times[1])};
}

}  // namespace

std::string Serialise(const StopIntent& intent) {
  return boost::json::serialize(boost::json::object{{"force", intent.force}});
}

StopIntent ParseStopIntent(std::string_view intent) {
  const Result<boost::json::value> value = ParseStrictJson(intent);
  if (!value || !value->is_object()) return {};
  const boost::json::value* force = value->as_object().if_contains("force");
  return {force != nullptr && force->is_bool() && force->as_bool()};
}

engine::Saga StartVmSaga(const WorkflowParts& parts) {
  const PowerVm power(parts);
  engine::Step start{"start", [power](const StepContext& c) { return power.Start(c); }, nullptr};
  return power.Saga(model::OperationKind::kStart, std::move(start), model::Observed::kRunning);
}

engine::Saga StopVmSaga(const WorkflowParts& parts) {
  const PowerVm power(parts);
  engine::Step stop{"stop", [power](const StepContext& c) { return power.Stop(c); }, nullptr};
  return power.Saga(model::OperationKind::kStop, std::move(stop), model::Observed::kStopped);
}

engine::Saga RebootVmSaga(const WorkflowParts& parts) {
  const PowerVm power(parts);
  engine::Step reboot{"reboot", [power](const StepContext& c) { return power.Reboot(c); }, nullptr};
  return power.Saga(model::OperationKind::kReboot, std::move(reboot), model::Observed::kRunning);
}

namespace {

engine::Saga PowerVm::Saga(model::OperationKind kind, engine::Step effect,
                           model::Observed after) const {
  const PowerVm power = *this;
  const WorkflowParts& parts = parts_;
  engine::Saga saga;
  saga.kind = kind;
  saga.steps = {
      {"hold", [power](const StepContext& c) { return power.HoldWhenSettled(c); }, nullptr},
      std::move(effect),
      {"publish", [power, after](const StepContext& c) { return power.Publish(c, after); },
       nullptr},
  };
  std::optional<model::Observed> done;
  if (kind != model::OperationKind::kReboot) done = after;
  saga.look = [power, done](const StepContext& c) { return power.Look(c, done); };
  saga.is_marked = [&parts](const StepContext& c) { return IsMarked(parts, c); };
  saga.is_settled = [&parts](const StepContext& c) { return IsSettled(parts, c); };
  const auto let_go = [](const StepContext& c) {
    engine::Closing closing;
    ports::VmChange change;
    change.vm = SubjectOf(c);
    change.release_hold = true;
    closing.changes.push_back(std::move(change));
    return closing;
  };
  saga.on_failed = [let_go](const StepContext& c, const model::Failure&) { return let_go(c); };
  saga.on_cancelled = let_go;
  saga.on_finished = [&parts](const model::Operation& operation) {
    return std::vector{OperationEvent(parts, operation)};
  };
  return saga;
}

LookResult PowerVm::Look(const StepContext& context, std::optional<model::Observed> done) const {
  // Before the effect there is nothing to see, and what was recorded as done is done.
  if (context.item.step != kEffect) return {LookResult::Kind::kGoOn, context.item.step, "recorded"};
  const Result<Target> target = Find(context);
  if (!target) return {LookResult::Kind::kNoAnswer, 0, target.error().detail};
  if (target->host->CallsOut(target->vm.id) > 0) {
    return {LookResult::Kind::kNoAnswer, 0, "an earlier call is still out"};
  }
  const Result<std::optional<ports::DomainSighting>> seen = target->host->Look(target->vm.id);
  if (!seen) return {LookResult::Kind::kNoAnswer, 0, seen.error().detail};
  // What is not there, or not ours, the step itself tells.
  const bool is_ours = seen->has_value() && IsOurs(parts_, **seen, target->vm);
  if (is_ours && done && (*seen)->power == *done) {
    return {LookResult::Kind::kGoOn, kPublish, "it is as asked"};
  }
  return {LookResult::Kind::kGoOn, kEffect, "it is not as asked"};
}

StepResult PowerVm::HoldWhenSettled(const StepContext& context) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return StepResult::From(vm.error());
  if (context.now < vm->unsettled_until) {
    return StepResult::Again(vm->unsettled_until - context.now, {},
                             "an earlier order may still take effect");
  }
  return Hold(context);
}

StepResult PowerVm::Start(const StepContext& context) const {
  const Result<Target> target = Find(context);
  if (!target) return StepResult::From(target.error());
  if (std::optional<StepResult> wait = AwaitHost(parts_, target->vm)) return std::move(*wait);
  if (target->vm.desired != model::Desired::kRunning) {
    return StepResult::Done("a later request wants it off");
  }
  StepResult result = From(target->host->Start(target->vm.id, GuardOf(context)));
  if (result.kind != StepResult::Kind::kUnavailable) return result;
  return WhyPortsTaken(parts_, target->vm).value_or(result);
}

// Asks the guest, now and then again, and watches; after the grace it is powered off.
StepResult PowerVm::Stop(const StepContext& context) const {
  const Result<Target> target = Find(context);
  if (!target) return StepResult::From(target.error());
  if (std::optional<StepResult> wait = AwaitHost(parts_, target->vm)) return std::move(*wait);
  // A guest that was asked already may follow at any time: that is seen to its end, and the later
  // request starts it again.
  if (target->vm.desired != model::Desired::kStopped && context.item.memo.empty()) {
    return StepResult::Done("a later request wants it to run");
  }
  ports::Hypervisor& host = *target->host;
  const model::VmId& vm = target->vm.id;

  const Result<std::optional<ports::DomainSighting>> seen = host.Look(vm);
  if (!seen) return StepResult::Unavailable("hypervisor_unavailable", seen.error().detail);
  if (!seen->has_value()) return From(Fail(ErrorCode::kNotFound, "no such domain"));
  if (!IsOurs(parts_, **seen, target->vm)) {
    return StepResult::Refused("conflict", "the host has a machine of this id that is not ours");
  }
  if (ParseStopIntent(context.operation.intent).force) {
    return From(host.Destroy(vm, GuardOf(context)));
  }
  if ((*seen)->power == model::Observed::kStopped) return StepResult::Done();

  // Not asked yet reads as asked at the epoch.
  const Asked asked = ParseAsked(context.item.memo).value_or(Asked{context.now, Time{}});
  if (context.now - asked.first >= parts_.settings.stop_grace) return PowerOff(host, context);
  if (context.now - asked.last < parts_.settings.ask_again) {
    return StepResult::Again(parts_.settings.observe_every, context.item.memo);
  }
  const Status status = host.Shutdown(vm, GuardOf(context));
  if (!status && status.error().code != ErrorCode::kConflict) return From(status);
  return StepResult::Again(parts_.settings.observe_every, Memo({asked.first, context.now}),
                           "asked the guest to shut down");
}

StepResult PowerVm::PowerOff(ports::Hypervisor& host, const StepContext& context) {
  StepResult forced = From(host.Destroy(SubjectOf(context), GuardOf(context)));
  if (forced.kind == StepResult::Kind::kDone)
    forced.detail = "the guest did not shut down in time; powered off";
  return forced;
}

StepResult PowerVm::Reboot(const StepContext& context) const {
  const Result<Target> target = Find(context);
  if (!target) return StepResult::From(target.error());
  if (std::optional<StepResult> wait = AwaitHost(parts_, target->vm)) return std::move(*wait);
  if (target->vm.desired != model::Desired::kRunning) {
    return StepResult::Done("a later request wants it off");
  }
  Status status = target->host->Reboot(target->vm.id, GuardOf(context));
  // A machine that is off is rebooted by starting it.
  if (!status && status.error().code == ErrorCode::kConflict) {
    status = target->host->Start(target->vm.id, GuardOf(context));
  }
  return From(status);
}

StepResult PowerVm::Publish(const StepContext& context, model::Observed observed) const {
  const Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return StepResult::From(vm.error());
  StepResult result = StepResult::Done();
  ports::VmChange change;
  change.vm = vm->id;
  change.release_hold = true;
  // Overtaken by a later request that wants the other thing, this one did nothing.
  const bool is_off = observed == model::Observed::kStopped;
  if (is_off == (vm->desired == model::Desired::kStopped)) {
    change.observed = observed;
    if (is_off) change.stopped_by = model::StopCause::kPerson;
  }
  result.changes.push_back(std::move(change));
  const std::string_view type = observed == model::Observed::kRunning ? "vm.started" : "vm.stopped";
  result.events.push_back(VmEvent(parts_, type, *vm, context.operation.id));
  return result;
}

Result<PowerVm::Target> PowerVm::Find(const StepContext& context) const {
  Result<Vm> vm = LoadVm(parts_, context);
  if (!vm) return std::unexpected(vm.error());
  const Result<ports::Hypervisor*> host = HostOf(parts_, *vm);
  if (!host) return std::unexpected(host.error());
  return Target{std::move(*vm), *host};
}

StepResult PowerVm::From(const Status& status) {
  if (status) return StepResult::Done();
  if (status.error().code == ErrorCode::kNotFound) {
    return StepResult::Refused("vm_missing",
                               "the host has no such machine; the reconciler will tell");
  }
  return StepResult::From(status.error());
}

}  // namespace
}  // namespace vmonce::workflows
