#include "service/intake.h"

#include "base/check.h"

namespace vmonce::service {

using model::Operation;
using ports::Accepted;
using ports::AcceptOutcome;
using ports::Known;
using ports::Submission;

Intake::Intake(ports::Ledger& ledger, engine::WorkerPool& workers, model::ReplicaId replica,
               Milliseconds lease_ttl, Clock& clock, Threads& threads, Logger& logger,
               IntakeBounds bounds)
    : ledger_(ledger),
      workers_(workers),
      replica_(std::move(replica)),
      lease_ttl_(lease_ttl),
      clock_(clock),
      threads_(threads),
      logger_(logger),
      bounds_(bounds),
      monitor_(threads.NewMonitor()) {}

Intake::~Intake() { Stop(); }

void Intake::Start() {
  thread_ = threads_.Spawn("intake", [this](std::stop_token) {
    while (true) {
      std::vector<ClaimPointer> batch = TakeBatch(/*wait=*/true);
      if (batch.empty()) return;
      Accept(batch);
    }
  });
}

void Intake::Stop() {
  {
    MonitorLock lock(*monitor_);
    is_stopping_ = true;
  }
  monitor_->NotifyAll();
  if (thread_) thread_->Join();
  thread_.reset();
}

bool Intake::Submit(Submission submission, Done done) {
  MonitorLock lock(*monitor_);
  if (is_stopping_) return false;
  std::optional<Key> key;
  if (submission.operation.key_hash) {
    key.emplace(submission.operation.project, *submission.operation.key_hash);
    const auto found = in_flight_.find(*key);
    if (found != in_flight_.end() &&
        found->second->fingerprint == submission.operation.fingerprint) {
      found->second->waiting.push_back(std::move(done));
      return true;
    }
  }
  if (queue_.size() >= bounds_.queue) return false;
  auto claim = std::make_shared<Claim>();
  claim->fingerprint = submission.operation.fingerprint;
  claim->submission = std::move(submission);
  claim->waiting.push_back(std::move(done));
  // A different body under the same key goes its own way; the ledger tells the two apart.
  if (key) in_flight_.try_emplace(*key, claim);
  queue_.push_back(std::move(claim));
  monitor_->NotifyOne();
  return true;
}

bool Intake::Post(std::function<void()> call) {
  MonitorLock lock(*monitor_);
  if (is_stopping_ || queue_.size() >= bounds_.queue) return false;
  auto claim = std::make_shared<Claim>();
  claim->call = std::move(call);
  queue_.push_back(std::move(claim));
  monitor_->NotifyOne();
  return true;
}

bool Intake::RunOnce() {
  std::vector<ClaimPointer> batch = TakeBatch(/*wait=*/false);
  if (batch.empty()) return false;
  Accept(batch);
  return true;
}

std::vector<Intake::ClaimPointer> Intake::TakeBatch(bool wait) {
  MonitorLock lock(*monitor_);
  while (wait && queue_.empty() && !is_stopping_) monitor_->Wait();
  const std::size_t count = std::min(queue_.size(), bounds_.batch);
  std::vector<ClaimPointer> batch(std::make_move_iterator(queue_.begin()),
                                  std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return batch;
}

void Intake::Accept(std::vector<ClaimPointer>& claims) {
  std::vector<Submission> batch;
  std::vector<Claim*> submitters;
  int free = workers_.FreeWorkers();
  for (const ClaimPointer& claim : claims) {
    if (claim->call) continue;
    if (free-- > 0) claim->submission.lease = ports::LeaseRequest{replica_, lease_ttl_};
    submitters.push_back(claim.get());
    batch.push_back(std::move(claim->submission));
  }
  const Instant asked = clock_.Monotonic();
  if (!batch.empty()) {
    std::vector<AcceptOutcome> outcomes = ledger_.Accept(batch);
    CHECK(outcomes.size() == submitters.size());
    for (std::size_t i = 0; i < submitters.size(); ++i) {
      Complete(*submitters[i], batch[i], std::move(outcomes[i]), asked);
    }
  }
  for (const ClaimPointer& claim : claims) {
    if (claim->call) claim->call();
  }
}

void Intake::Complete(Claim& claim, const Submission& submission, AcceptOutcome outcome,
                      Instant asked) {
  if (!outcome && outcome.error().code != ErrorCode::kUnavailable) {
    outcome = ReadAgain(submission, outcome.error());
  }
  if (outcome) {
    if (const auto* accepted = std::get_if<Accepted>(&*outcome)) Wake(submission, *accepted, asked);
  }
  std::vector<Done> waiting;
  {
    // From here on an identical request finds the row in the ledger.
    MonitorLock lock(*monitor_);
    if (submission.operation.key_hash) {
      const auto found =
          in_flight_.find({submission.operation.project, *submission.operation.key_hash});
      if (found != in_flight_.end() && found->second.get() == &claim) in_flight_.erase(found);
    }
    waiting.swap(claim.waiting);
  }
  for (std::size_t i = 1; i < waiting.size(); ++i) {
    // Whoever joined is told what a later duplicate would be told.
    const auto* accepted = outcome ? std::get_if<Accepted>(&*outcome) : nullptr;
    waiting[i](accepted ? AcceptOutcome(Known{accepted->operation, accepted->vms}) : outcome);
  }
  waiting.front()(std::move(outcome));
}

AcceptOutcome Intake::ReadAgain(const Submission& submission, const Error& error) {
  const Operation& operation = submission.operation;
  logger_.Warning("accept_outcome_unknown",
                  {{"operation", ToString(operation.id)}, {"cause", error.detail}});
  if (!operation.key_hash) {
    // Nothing finds it by key: its own id tells.
    Result<std::optional<Operation>> found = ledger_.GetOperation(operation.id);
    if (!found) return Fail(ErrorCode::kUnknown, found.error().detail);
    if (!found->has_value()) return Fail(ErrorCode::kUnavailable, error.detail);
    Result<std::vector<model::Vm>> vms = ledger_.VmsOf(operation.id);
    if (!vms) return Fail(ErrorCode::kUnknown, vms.error().detail);
    return Accepted{std::move(**found), std::move(*vms)};
  }
  auto found = ledger_.FindByKey(operation.project, *operation.key_hash);
  if (!found) return Fail(ErrorCode::kUnknown, found.error().detail);
  if (!found->has_value()) return Fail(ErrorCode::kUnavailable, error.detail);
  if (auto* known = std::get_if<Known>(&**found)) {
    if (known->operation.id == operation.id) return Accepted{known->operation, known->vms};
    return std::move(*known);
  }
  return std::get<ports::KnownTombstone>(std::move(**found));
}

void Intake::Wake(const Submission& submission, const Accepted& accepted, Instant asked) {
  const Operation& operation = accepted.operation;
  if (operation.lease_owner == replica_.value && !model::IsFinished(operation.state)) {
    workers_.HandOver(operation, asked);
  } else {
    workers_.Notify();
  }
  // Whoever works on a VM that was just marked for deletion should see the mark now, not after its
  // backoff.
  if (!std::holds_alternative<ports::DeleteVm>(submission.change)) return;
  for (const model::Vm& vm : accepted.vms) {
    if (!vm.holder || *vm.holder == operation.id) continue;
    if (const Status woken = ledger_.MakeDue(*vm.holder); woken) workers_.Notify();
  }
}

}  // namespace vmonce::service
