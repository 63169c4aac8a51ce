#include "engine/run.h"

#include "base/check.h"

namespace vmonce::engine {
namespace {

using Kind = StepResult::Kind;

std::string_view OutcomeOf(Kind kind) {
  switch (kind) {
    case Kind::kDone: return "done";
    case Kind::kAgain: return "again";
    case Kind::kUnavailable: return "unavailable";
    case Kind::kUnknown: return "unknown";
    case Kind::kRefused: return "refused";
    case Kind::kFenced: return "fenced";
    case Kind::kRewind: return "rewind";
  }
  return "unknown";
}

}  // namespace

OperationRun::OperationRun(const WorkerParts& parts, const Saga& saga, HeldLease& lease,
                           model::Operation& operation)
    : parts_(parts),
      saga_(saga),
      lease_(lease),
      operation_(operation),
      recorded_(parts.clock.Monotonic()) {}

void OperationRun::Run(const std::stop_token& stop) {
  // Every pass moves the cursor or ends; forward, undo and rewinds together stay far below this.
  const int bound = 16 * (static_cast<int>(saga_.steps.size()) + 2);
  for (model::Item& item : operation_.items) {
    redo_until_ = 0;
    Next next = Next::kGoOn;
    for (int pass = 0; next == Next::kGoOn && pass < bound; ++pass) {
      if (stop.stop_requested()) break;
      next = Advance(item);
    }
    if (next == Next::kLost) return;
  }
  if (!has_ended_) Release();
}

OperationRun::Next OperationRun::Advance(model::Item& item) {
  seen_.reset();
  if (model::IsEnded(item.phase)) return Next::kStop;
  if (const Next marked = CheckMark(item); marked != Next::kGoOn) return marked;
  if (parts_.ledger.Now() < item.not_before) return Next::kStop;
  if (item.phase == model::ItemPhase::kUndoing) return Undo(item);
  if (item.look_first && saga_.look) return Look(item);
  item.look_first = false;
  return item.step == LastStep() && WaitsForCalls(item) ? Next::kStop : RunStep(item);
}

// What has ended is nobody's to watch any more: the next operation on its subject may believe that
// no call for it is out.
bool OperationRun::WaitsForCalls(model::Item& item) {
  if (!saga_.is_settled || saga_.is_settled(ContextOf(item))) return false;
  is_unsettled_ = true;
  Wait(item, parts_.bounds.held_retry);
  return true;
}

OperationRun::Next OperationRun::CheckMark(model::Item& item) {
  if (!saga_.is_marked) return Next::kGoOn;
  const Result<bool> marked = saga_.is_marked(ContextOf(item));
  if (!marked) {
    Note(item, "ledger_unavailable", marked.error().detail);
    Wait(item, BackoffAfter(item.failures + 1));
    return Next::kStop;
  }
  if (!*marked) return Next::kGoOn;
  if (IsSettled(item)) return EndCancelled(item);
  // Whoever deletes must find that every earlier call has returned.
  is_unsettled_ = true;
  Wait(item, parts_.bounds.held_retry);
  return Next::kStop;
}

OperationRun::Next OperationRun::Look(model::Item& item) {
  const LookResult seen = saga_.look(ContextOf(item));
  Note(item, "looked", seen.detail);
  switch (seen.kind) {
    case LookResult::Kind::kFenced: return Next::kLost;
    case LookResult::Kind::kConflict:
      return BeginUndo(item, {"conflict", seen.detail, false}, item.step);
    case LookResult::Kind::kNoAnswer:
      ++item.blind_looks;
      Wait(item, BackoffAfter(item.blind_looks));
      return Next::kStop;
    case LookResult::Kind::kGoOn: break;
  }
  CHECK(seen.step >= 0 && seen.step < static_cast<int>(saga_.steps.size()));
  // Nothing more is there than before: the try whose answer was unknown had no effect, and counts
  // as a failure.
  if (seen.step > item.step) item.failures = 0;
  redo_until_ = std::max(redo_until_, item.step);
  item.step = seen.step;
  item.look_first = false;
  item.blind_looks = 0;
  if (saga_.may_fail && item.failures >= parts_.bounds.step_failures) {
    return BeginUndo(item,
                     item.failure.value_or(model::Failure{"hypervisor_unavailable",
                                                          "the outcome stayed unknown", true}),
                     LastStep());
  }
  return Next::kGoOn;
}

OperationRun::Next OperationRun::RunStep(model::Item& item) {
  const Step& step = saga_.steps[static_cast<std::size_t>(item.step)];
  StepResult result = Try(item, step.run, step.name);
  switch (result.kind) {
    case Kind::kDone: return StepDone(item, std::move(result));
    case Kind::kAgain: return Again(item, result);
    case Kind::kUnavailable:
    case Kind::kRefused: return Failed(item, result);
    case Kind::kUnknown: return Unknown(item, result);
    case Kind::kFenced: return Next::kLost;
    case Kind::kRewind: break;
  }
  Note(item, "rewound", result.detail);
  item.step = 0;
  item.memo.clear();
  Wait(item, BackoffAfter(++item.failures));
  return Next::kStop;
}

OperationRun::Next OperationRun::StepDone(model::Item& item, StepResult result) {
  const model::Item before = item;
  Note(item, "step_done",
       result.detail.empty() ? StepName(item) : StepName(item) + ": " + result.detail);
  if (item.step >= redo_until_) {
    item.failures = 0;
    item.failure.reset();
  }
  ++item.step;
  item.memo.clear();
  if (item.step == static_cast<int>(saga_.steps.size())) item.phase = model::ItemPhase::kDone;

  ports::Advance advance;
  advance.changes = std::move(result.changes);
  advance.events = std::move(result.events);
  if (saga_.is_marked) advance.unless_marked = item.subject;
  if (MayRide(item, advance)) return Next::kGoOn;
  return Record(item, before, std::move(advance));
}

// Nothing relies on the cursor: whoever takes over looks, and every step may run twice. A record
// that changes nothing else saves that repetition, shows where the work is and costs a commit, so
// that steps of no time at all share one. What lasts is begun with its progress written, so that
// people see where the work is. What fixes or tells something is written before anything
// else happens.
bool OperationRun::MayRide(const model::Item& item, const ports::Advance& advance) const {
  return !model::IsEnded(item.phase) && advance.changes.empty() && advance.events.empty() &&
         parts_.clock.Monotonic() - recorded_ < parts_.bounds.record_within &&
         (parts_.step_times == nullptr ||
          parts_.step_times->IsShort(operation_.kind, item.step, parts_.bounds.record_within));
}

OperationRun::Next OperationRun::Again(model::Item& item, const StepResult& result) {
  item.memo = result.memo;
  Wait(item, result.again_in);
  if (!result.detail.empty()) Note(item, "step_goes_on", StepName(item) + ": " + result.detail);
  return Next::kStop;
}

OperationRun::Next OperationRun::Failed(model::Item& item, const StepResult& result) {
  const bool is_final = result.kind == Kind::kRefused;
  ++item.failures;
  Note(item, is_final ? "step_refused" : "step_unavailable", StepName(item) + ": " + result.detail);
  item.failure = model::Failure{result.code, result.detail, !is_final};
  if (saga_.may_fail && (is_final || item.failures >= parts_.bounds.step_failures)) {
    return BeginUndo(item, *item.failure, LastStep());
  }
  Wait(item, BackoffAfter(item.failures));
  return Next::kStop;
}

OperationRun::Next OperationRun::Unknown(model::Item& item, const StepResult& result) {
  ++item.failures;
  item.look_first = true;
  // The call has returned, and what it ordered may still take effect: a connection that broke
  // leaves the order with the hypervisor.
  item.unsettled_until = parts_.ledger.Now() + parts_.bounds.settle;
  item.failure = model::Failure{"hypervisor_unavailable", result.detail, true};
  Note(item, "step_unknown", StepName(item) + ": " + result.detail);
  Wait(item, BackoffAfter(item.failures));
  return Next::kStop;
}

// The cursor is no measure of what may be there: a look may have set it back. Every undo may run
// for nothing, so all of them do.
OperationRun::Next OperationRun::BeginUndo(model::Item& item, model::Failure failure, int from) {
  const model::Item before = item;
  Note(item, "undo_begins", failure.detail);
  item.phase = model::ItemPhase::kUndoing;
  item.step = std::min(from, LastStep());
  item.failures = 0;
  item.memo.clear();
  item.failure = std::move(failure);
  return Record(item, before, {});
}

OperationRun::Next OperationRun::Undo(model::Item& item) {
  if (!IsSettled(item)) {
    is_unsettled_ = true;
    Wait(item, parts_.bounds.held_retry);
    return Next::kStop;
  }
  if (item.step < 0) return EndFailed(item);
  const Step& step = saga_.steps[static_cast<std::size_t>(item.step)];
  if (!step.undo) {
    --item.step;
    return Next::kGoOn;
  }
  StepResult result = Try(item, step.undo, step.name);
  switch (result.kind) {
    case Kind::kDone: return UndoStepDone(item, std::move(result));
    case Kind::kAgain: return Again(item, result);
    case Kind::kFenced: return Next::kLost;
    case Kind::kRewind: item.step = LastStep(); break;
    case Kind::kUnavailable:
    case Kind::kUnknown:
    case Kind::kRefused: break;
  }
  return UndoFailed(item, result);
}

OperationRun::Next OperationRun::UndoStepDone(model::Item& item, StepResult result) {
  const model::Item before = item;
  Note(item, "step_undone", StepName(item));
  --item.step;
  item.failures = 0;
  item.memo.clear();
  ports::Advance advance;
  advance.changes = std::move(result.changes);
  advance.events = std::move(result.events);
  return Record(item, before, std::move(advance));
}

OperationRun::Next OperationRun::UndoFailed(model::Item& item, const StepResult& result) {
  ++item.failures;
  item.memo.clear();
  Note(item, "undo_not_yet", StepName(item) + ": " + result.detail);
  Wait(item, BackoffAfter(item.failures));
  return Next::kStop;
}

OperationRun::Next OperationRun::EndFailed(model::Item& item) {
  CHECK(item.failure.has_value());
  const model::Item before = item;
  Note(item, "item_failed", item.failure->detail);
  item.phase = model::ItemPhase::kFailed;
  // A new attempt starts no earlier than the settle time after this undo.
  Wait(item, parts_.bounds.settle);
  ports::Advance advance;
  if (saga_.is_marked) advance.unless_marked = item.subject;
  if (saga_.on_failed) {
    Closing closing = saga_.on_failed(ContextOf(item), *item.failure);
    advance.changes = std::move(closing.changes);
    advance.events = std::move(closing.events);
  }
  return Record(item, before, std::move(advance));
}

OperationRun::Next OperationRun::EndCancelled(model::Item& item) {
  const model::Item before = item;
  Note(item, "item_cancelled", "marked for deletion");
  item.phase = model::ItemPhase::kCancelled;
  ports::Advance advance;
  if (saga_.on_cancelled) {
    Closing closing = saga_.on_cancelled(ContextOf(item));
    advance.changes = std::move(closing.changes);
    advance.events = std::move(closing.events);
  }
  return Record(item, before, std::move(advance));
}

OperationRun::Next OperationRun::Record(model::Item& item, const model::Item& before,
                                        ports::Advance advance) {
  // The fence would settle it; but whoever may not act says nothing either.
  if (parts_.clock.Monotonic() >= lease_.deadline()) return Next::kLost;
  SummariseInto(advance);
  const Result<ports::AdvanceOutcome> outcome = parts_.ledger.Record(advance);
  if (!outcome) {
    // Whether it is written is not known. The lease runs out by itself; whoever takes over reads
    // what is there.
    parts_.logger.Warning("record_failed", {{"operation", ToString(operation_.id)},
                                            {"cause", outcome.error().detail}});
    return Next::kLost;
  }
  if (*outcome == ports::AdvanceOutcome::kLost) return Next::kLost;
  if (*outcome != ports::AdvanceOutcome::kRecorded) {
    item = before;
    notes_.pop_back();
    return Declined(item, *outcome);
  }
  notes_.clear();
  seen_.reset();
  recorded_ = parts_.clock.Monotonic();
  operation_.state = advance.state;
  operation_.failure = advance.failure;
  if (model::IsFinished(advance.state)) {
    has_ended_ = true;
    parts_.observer.OperationEnded(operation_);
  }
  return model::IsEnded(item.phase) ? Next::kStop : Next::kGoOn;
}

OperationRun::Next OperationRun::Declined(model::Item& item, ports::AdvanceOutcome outcome) {
  switch (outcome) {
    case ports::AdvanceOutcome::kRecorded:
    case ports::AdvanceOutcome::kLost: break;
    case ports::AdvanceOutcome::kMarked: return Next::kGoOn;  // The next pass sees the mark.
    case ports::AdvanceOutcome::kHeld: Wait(item, parts_.bounds.held_retry); return Next::kStop;
    case ports::AdvanceOutcome::kPortTaken:
      return Failed(
          item, StepResult::Unavailable(
                    "host_port_taken", "a host port that was asked for is taken, or none is free"));
    case ports::AdvanceOutcome::kNoRoom:
      return Failed(item,
                    StepResult::Unavailable("no_capacity", "the chosen host has no room left"));
  }
  CHECK_MSG(false, "not a refusal of the ledger");
}

void OperationRun::Release() {
  Time first = Time::max();
  for (model::Item& item : operation_.items) {
    if (model::IsEnded(item.phase)) continue;
    first = std::min(first, item.not_before);
    NoteCallsOut(item);
  }
  ports::Advance advance;
  SummariseInto(advance);
  if (!model::IsFinished(advance.state)) {
    advance.release_due_in = std::max(Milliseconds(0), first - parts_.ledger.Now());
  }
  const Result<ports::AdvanceOutcome> outcome = parts_.ledger.Record(advance);
  if (!outcome) {
    parts_.logger.Warning("release_failed", {{"operation", ToString(operation_.id)},
                                             {"cause", outcome.error().detail}});
  }
}

// Until it returns, this process waits for it. Should the process end first, whoever comes next
// must know that there was one.
void OperationRun::NoteCallsOut(model::Item& item) {
  seen_.reset();
  const bool is_out = saga_.is_settled && !saga_.is_settled(ContextOf(item));
  item.call_left_by = is_out ? parts_.replica.value : std::string();
}

void OperationRun::SummariseInto(ports::Advance& advance) {
  advance.lease = lease_.lease();
  advance.items = operation_.items;
  advance.timeline = notes_;
  advance.is_stuck = IsStuck();
  bool has_done = false;
  bool may_retry = false;
  for (const model::Item& item : operation_.items) {
    if (!model::IsEnded(item.phase)) {
      advance.state =
          IsVerifying() ? model::OperationState::kVerifying : model::OperationState::kRunning;
      return;
    }
    has_done = has_done || item.phase == model::ItemPhase::kDone;
    if (item.phase != model::ItemPhase::kFailed) continue;
    may_retry = may_retry || item.failure->passing;
    // What can pass is worth the retry that it invites; otherwise the first cause is told.
    if (!advance.failure || (item.failure->passing && !advance.failure->passing)) {
      advance.failure = item.failure;
    }
  }
  advance.state = advance.failure ? model::OperationState::kFailed
                  : has_done      ? model::OperationState::kSucceeded
                                  : model::OperationState::kCancelled;
  advance.drop_secrets = !may_retry;
  if (saga_.on_finished) {
    model::Operation ended = operation_;
    ended.state = advance.state;
    ended.failure = advance.failure;
    for (model::Event& event : saga_.on_finished(ended)) advance.events.push_back(std::move(event));
  }
}

bool OperationRun::IsVerifying() const {
  return is_unsettled_ || std::ranges::any_of(operation_.items, [](const model::Item& item) {
           if (model::IsEnded(item.phase)) return false;
           const bool is_unknown = item.look_first && item.failures > 0;
           const bool is_undoing = item.phase == model::ItemPhase::kUndoing && item.failures > 0;
           return is_unknown || is_undoing || item.blind_looks > 0;
         });
}

bool OperationRun::IsStuck() const {
  const int most = parts_.bounds.stuck_failures;
  return std::ranges::any_of(operation_.items, [most](const model::Item& item) {
    return !model::IsEnded(item.phase) && (item.blind_looks >= most || item.failures >= most);
  });
}

StepResult OperationRun::Try(const model::Item& item,
                             const std::function<StepResult(const StepContext&)>& call,
                             std::string_view step) {
  const Instant began = parts_.clock.Monotonic();
  if (began >= lease_.deadline()) return {Kind::kFenced, "the lease ran out"};
  StepResult result = call(ContextOf(item));
  seen_.reset();
  const auto took = parts_.clock.Monotonic() - began;
  if (parts_.step_times != nullptr) parts_.step_times->Note(operation_.kind, item.step, took);
  parts_.observer.StepTried(operation_.kind, step, OutcomeOf(result.kind),
                            std::chrono::duration_cast<Milliseconds>(took));
  return result;
}

StepContext OperationRun::ContextOf(const model::Item& item) {
  return StepContext{operation_, item, lease_, parts_.ledger.Now(), seen_};
}

bool OperationRun::IsSettled(const model::Item& item) {
  if (parts_.ledger.Now() < item.unsettled_until) return false;
  return !saga_.is_settled || saga_.is_settled(ContextOf(item));
}

Milliseconds OperationRun::BackoffAfter(int failures) {
  return Backoff(failures, parts_.bounds.backoff, parts_.random);
}

void OperationRun::Wait(model::Item& item, Milliseconds in) {
  item.not_before = parts_.ledger.Now() + in;
}

void OperationRun::Note(const model::Item& item, std::string event, std::string detail) {
  model::TimelineEntry entry;
  entry.operation = operation_.id;
  entry.at = parts_.ledger.Now();
  entry.replica = parts_.replica.value;
  entry.attempt = operation_.attempt;
  entry.index = item.index;
  entry.event = std::move(event);
  entry.detail = std::move(detail);
  notes_.push_back(std::move(entry));
}

std::string OperationRun::StepName(const model::Item& item) const {
  if (item.step < 0 || item.step >= static_cast<int>(saga_.steps.size())) return "end";
  return std::string(saga_.steps[static_cast<std::size_t>(item.step)].name);
}

}  // namespace vmonce::engine
