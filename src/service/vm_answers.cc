// The answers of protocol section 6.
#include <fmt/format.h>

#include "base/json.h"
#include "base/rfc3339.h"
#include "model/limits.h"
#include "model/retention.h"
#include "service/pending.h"
#include "service/queries.h"

namespace vmonce::service {
namespace {

using model::KnownAnswer;
using model::Operation;

constexpr std::string_view kBodyPointer = "/body";

bool AreAllDeleted(const std::vector<model::Vm>& vms) {
  return std::ranges::all_of(vms, [](const model::Vm& vm) {
    return vm.state == model::VmState::kDeleted || vm.delete_operation.has_value();
  });
}

// Answered as a cancelled create is.
bool WasDeletedAfterFailing(const ports::Known& known) {
  return known.operation.state == model::OperationState::kFailed && !known.vms.empty() &&
         AreAllDeleted(known.vms);
}

model::Problem ReusedExpired(const model::Tombstone& tombstone) {
  model::Problem problem;
  problem.code = "idempotency_key_reused";
  problem.detail =
      "This key was used for a different request, whose record has expired. Use a new key.";
  problem.first_seen = tombstone.first_seen;
  return problem;
}

// Requests of one face are compared by fingerprint, of two by intent.
KnownAnswer DecideFor(const Operation& record, const Asked& asked, const Digest& fingerprint,
                      const std::string& intent) {
  if (record.face == asked.face) return model::Decide(record, fingerprint);
  const bool is_same = !intent.empty() && record.intent == intent;
  return is_same ? model::Decide(record, record.fingerprint) : KnownAnswer::kMismatch;
}

}  // namespace

void VmService::Accepted(const PendingPointer& pending, ports::AcceptOutcome outcome) {
  if (!outcome) {
    Reply(pending, std::unexpected(LedgerProblem(outcome.error())), "ledger_unavailable");
    return;
  }
  if (auto* accepted = std::get_if<ports::Accepted>(&*outcome)) {
    Answer answer;
    if (accepted->operation.sequence != 0) answer.operation = std::move(accepted->operation);
    answer.vms = std::move(accepted->vms);
    if (pending->key_hash && answer.operation) {
      known_keys_.Put(pending->asked.caller.project, *pending->key_hash);
    }
    AnswerOrWait(pending, std::move(answer), "created");
  } else if (auto* known = std::get_if<ports::Known>(&*outcome)) {
    AnswerKnown(pending, std::move(*known), /*may_revive=*/true);
  } else if (auto* tombstone = std::get_if<ports::KnownTombstone>(&*outcome)) {
    AnswerFound(pending, std::move(*tombstone));
  } else if (auto* joined = std::get_if<ports::Joined>(&*outcome)) {
    Answer answer;
    answer.is_replay = true;
    answer.operation = std::move(joined->operation);
    answer.vms.push_back(std::move(joined->vm));
    AnswerOrWait(pending, std::move(answer), "joined");
  } else {
    const auto& declined = std::get<ports::Declined>(*outcome);
    Reply(pending, std::unexpected(ProblemOf(declined)), "refused");
  }
}

void VmService::AnswerFound(const PendingPointer& pending,
                            std::variant<ports::Known, ports::KnownTombstone> found) {
  if (auto* known = std::get_if<ports::Known>(&found)) {
    AnswerKnown(pending, std::move(*known), /*may_revive=*/true);
    return;
  }
  const model::Tombstone& tombstone = std::get<ports::KnownTombstone>(found).tombstone;
  known_keys_.Forget(pending->asked.caller.project, *pending->key_hash);
  if (model::Decide(tombstone, pending->fingerprint) == KnownAnswer::kExpired) {
    Reply(pending, std::unexpected(ExpiredProblem(tombstone)), "expired");
    return;
  }
  Reply(pending, std::unexpected(ReusedExpired(tombstone)), "mismatch");
}

void VmService::AnswerKnown(const PendingPointer& pending, ports::Known known, bool may_revive) {
  const Operation& operation = known.operation;
  if (pending->key_hash) {
    known_keys_.Put(pending->asked.caller.project, *pending->key_hash);
  }
  const KnownAnswer decided =
      DecideFor(operation, pending->asked, pending->fingerprint, pending->intent);
  if (decided == KnownAnswer::kMismatch) {
    Reply(pending, std::unexpected(MismatchOf(pending->asked, operation)), "mismatch");
    return;
  }
  NoteDuplicate(operation.id);
  const bool was_deleted = WasDeletedAfterFailing(known);
  if (decided == KnownAnswer::kFailedForGood && !was_deleted) {
    Reply(pending, std::unexpected(StoredProblem(operation)), "failed_for_good");
    return;
  }
  if (decided == KnownAnswer::kNewAttempt && !was_deleted && may_revive) {
    Revive(pending, operation);
    return;
  }
  Answer answer;
  answer.is_replay = true;
  answer.reading = ReadingOf(*pending, known);
  answer.vms = std::move(known.vms);
  answer.operation = std::move(known.operation);
  AnswerOrWait(pending, std::move(answer), "replayed");
}

// A record that has succeeded is written no more, and goes only together with its VMs' rows.
std::optional<Reading> VmService::ReadingOf(const Pending& pending,
                                            const ports::Known& known) const {
  const Operation& operation = known.operation;
  const bool is_final = operation.kind == model::OperationKind::kCreate &&
                        operation.state == model::OperationState::kSucceeded &&
                        known.vms.size() == operation.items.size();
  if (!pending.read_since || !is_final) return std::nullopt;
  Reading reading{*pending.read_since, operation.id, {}};
  for (const model::Vm& vm : known.vms) reading.vms.push_back(vm.id);
  return reading;
}

bool VmService::Repeat(const Reading& reading) {
  const bool stands = std::ranges::all_of(reading.vms, [&](const model::VmId& vm) {
    return parts_.watch->IsUnchanged(vm, reading.since);
  });
  if (!stands) return false;
  NoteDuplicate(reading.operation);
  Count("replayed");
  return true;
}

// One guarded transaction gives the same operation a new attempt; of many retries one wins, and the
// others find it running.
void VmService::Revive(const PendingPointer& pending, const Operation& operation) {
  const Result<model::Resources> capacity = parts_.capacity();
  if (!capacity) {
    Reply(pending, std::unexpected(LedgerProblem(capacity.error())), "ledger_unavailable");
    return;
  }
  ports::AcceptOutcome outcome = parts_.ledger.Revive(
      operation.id, operation.attempt, settings_.quotas.Of(operation.project).amounts, *capacity);
  if (!outcome) {
    Reply(pending, std::unexpected(LedgerProblem(outcome.error())), "ledger_unavailable");
    return;
  }
  if (auto* accepted = std::get_if<ports::Accepted>(&*outcome)) {
    parts_.workers.Notify();
    Answer answer;
    answer.is_replay = true;
    answer.operation = std::move(accepted->operation);
    answer.vms = std::move(accepted->vms);
    AnswerOrWait(pending, std::move(answer), "new_attempt");
  } else if (auto* known = std::get_if<ports::Known>(&*outcome)) {
    const bool has_failed_anew = known->operation.state == model::OperationState::kFailed &&
                                 known->operation.attempt != operation.attempt;
    if (has_failed_anew) {
      Reply(pending, std::unexpected(StoredProblem(known->operation)), "failed");
    } else {
      // It goes on, or what failed was deleted and there is nothing left to try.
      AnswerKnown(pending, std::move(*known), /*may_revive=*/false);
    }
  } else if (auto* declined = std::get_if<ports::Declined>(&*outcome)) {
    model::Problem problem = ProblemOf(*declined);
    problem.operation = operation.id;
    problem.retry_same_key = true;
    Reply(pending, std::unexpected(std::move(problem)), "refused");
  } else {
    Reply(pending, std::unexpected(StoredProblem(operation)), "failed_for_good");
  }
}

void VmService::AnswerOrWait(const PendingPointer& pending, Answer answer,
                             std::string_view counted_as) {
  const bool may_wait = answer.operation && !model::IsFinished(answer.operation->state) &&
                        pending->MayWait(parts_.clock);
  if (!may_wait) {
    Reply(pending, Complete(std::move(answer)), counted_as);
    return;
  }
  const model::OperationId id = answer.operation->id;
  const bool is_replay = answer.is_replay;
  parts_.waiters.Wait(id, pending->answer_by,
                      [this, pending, id, is_replay](bool) { AnswerLive(pending, id, is_replay); });
  // It may have ended before the wait began.
  const Result<std::optional<Operation>> now = parts_.ledger.GetOperation(id);
  if (now && now->has_value() && model::IsFinished((*now)->state)) parts_.waiters.Ended(id);
}

void VmService::AnswerLive(const PendingPointer& pending, const model::OperationId& id,
                           bool is_replay) {
  Outcome outcome = ReadAnswer(id, is_replay);
  const std::string_view counted_as = !outcome ? "failed" : is_replay ? "replayed" : "created";
  Reply(pending, std::move(outcome), counted_as);
}

Outcome VmService::ReadAnswer(const model::OperationId& id, bool is_replay) {
  Result<std::optional<Operation>> operation = parts_.ledger.GetOperation(id);
  if (!operation) return std::unexpected(LedgerProblem(operation.error()));
  if (!operation->has_value()) {
    return std::unexpected(LedgerProblem({ErrorCode::kInternal, "the operation is gone"}));
  }
  Result<std::vector<model::Vm>> vms = VmsOfOperation(parts_.ledger, **operation);
  if (!vms) return std::unexpected(LedgerProblem(vms.error()));
  if ((*operation)->state == model::OperationState::kFailed && !AreAllDeleted(*vms)) {
    return std::unexpected(StoredProblem(**operation));
  }
  Answer answer;
  answer.is_replay = is_replay;
  answer.operation = std::move(**operation);
  answer.vms = std::move(*vms);
  return Complete(std::move(answer));
}

Outcome VmService::Complete(Answer answer) const {
  if (!answer.operation) return answer;
  if (model::IsFinished(answer.operation->state)) {
    const std::optional<Time> last_gone = model::LastGone(*answer.operation, answer.vms);
    answer.expires = model::RecordExpiry(*answer.operation, last_gone, settings_.retention);
  }
  return answer;
}

void VmService::Reply(const PendingPointer& pending, Outcome outcome, std::string_view counted_as) {
  Count(counted_as);
  pending->done(std::move(outcome));
}

std::expected<DryRun, model::Problem> VmService::WouldReplay(
    const Pending& pending, const std::variant<ports::Known, ports::KnownTombstone>& found) const {
  DryRun run;
  if (const auto* gone = std::get_if<ports::KnownTombstone>(&found)) {
    const bool is_same =
        model::Decide(gone->tombstone, pending.fingerprint) == KnownAnswer::kExpired;
    run.would = is_same ? DryRun::Would::kExpired : DryRun::Would::kMismatch;
    run.problem = is_same ? ExpiredProblem(gone->tombstone) : ReusedExpired(gone->tombstone);
    return run;
  }
  const auto& known = std::get<ports::Known>(found);
  run.operation = known.operation;
  run.vms = known.vms;
  const KnownAnswer decided =
      DecideFor(known.operation, pending.asked, pending.fingerprint, pending.intent);
  if (decided != KnownAnswer::kMismatch && WasDeletedAfterFailing(known)) {
    run.would = DryRun::Would::kReplay;
    return run;
  }
  switch (decided) {
    case KnownAnswer::kMismatch:
      run.would = DryRun::Would::kMismatch;
      run.problem = MismatchOf(pending.asked, known.operation);
      break;
    case KnownAnswer::kFailedForGood:
      run.would = DryRun::Would::kRefuse;
      run.problem = StoredProblem(known.operation);
      break;
    case KnownAnswer::kNewAttempt: run.would = DryRun::Would::kNewAttempt; break;
    case KnownAnswer::kInProgress:
    case KnownAnswer::kSucceeded:
    case KnownAnswer::kCancelled:
    case KnownAnswer::kExpired: run.would = DryRun::Would::kReplay; break;
  }
  return run;
}

model::Problem VmService::MismatchOf(const Asked& asked, const Operation& operation) const {
  model::Problem problem;
  problem.code = "idempotency_key_reused";
  problem.operation = operation.id;
  problem.first_seen = operation.accepted;
  if (operation.kind == model::OperationKind::kCreate && operation.items.size() == 1) {
    problem.vm = model::VmId{operation.items.front().subject};
  }
  const Result<boost::json::value> before = ParseStrictJson(operation.canonical_request);
  const Result<boost::json::value> now = ParseStrictJson(model::CanonicalRequest(asked.redacted));
  if (before && now) {
    problem.differing = DifferingPointers(*before, *now, model::limits::kDifferingPointers);
    // Into the body as the caller sent it; what lies outside it (/method, /route, /query) stays as
    // it is.
    for (std::string& pointer : problem.differing) {
      if (pointer.starts_with(kBodyPointer)) pointer.erase(0, kBodyPointer.size());
    }
  }
  problem.detail = fmt::format(
      "This Idempotency-Key was first used at {} for a different request. Nothing was done now. "
      "Send the first request again to get its result, or use a new key for this one.",
      FormatRfc3339(operation.accepted));
  if (operation.canonical_request.empty()) {
    problem.detail +=
        " What differs cannot be told: the record was rebuilt from the machines on the hosts, "
        "which "
        "keep a hash of the request and not the request.";
  }
  return problem;
}

void VmService::Count(std::string_view outcome) {
  MonitorLock lock(*monitor_);
  ++outcomes_[std::string(outcome)];
}

void VmService::NoteDuplicate(const model::OperationId& operation) {
  MonitorLock lock(*monitor_);
  // Bounded: what does not fit between two flushes is not told, and costs nothing else.
  if (const auto found = duplicates_.find(operation); found != duplicates_.end()) {
    ++found->second;
  } else if (duplicates_.size() < model::limits::kDuplicateNotes) {
    duplicates_.emplace(operation, 1);
  }
}

void VmService::FlushDuplicates() {
  std::unordered_map<model::OperationId, int, UuidHash> duplicates;
  {
    MonitorLock lock(*monitor_);
    duplicates.swap(duplicates_);
  }
  std::vector<model::TimelineEntry> entries;
  for (const auto& [operation, count] : duplicates) {
    model::TimelineEntry entry;
    entry.operation = operation;
    entry.replica = parts_.replica.value;
    entry.event = "duplicate_served";
    entry.detail = count == 1 ? "one duplicate" : fmt::format("{} duplicates", count);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return;
  if (const Status added = parts_.ledger.AppendTimeline(entries); !added) {
    parts_.logger.Warning("duplicates_not_noted", {{"cause", added.error().detail}});
  }
}

std::map<std::string, std::int64_t> VmService::OutcomeCounts() const {
  MonitorLock lock(*monitor_);
  return outcomes_;
}

}  // namespace vmonce::service
