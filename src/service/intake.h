// The seam between many waiting callers and few ledger connections. Claims queue here; one thread
// takes all that wait and accepts them in one transaction. Identical claims of one process are
// joined before they reach the ledger: an optimisation, never the guarantee, which is the ledger's
// unique index.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "engine/worker_pool.h"
#include "ports/ledger.h"

namespace vmonce::service {

struct IntakeBounds {
  std::size_t batch = 0;
  std::size_t queue = 0;
};

// Thread-safe. What it is given outlives it.
class Intake {
 public:
  // Called once, on the intake's thread; must not block for long, since every waiting claim waits
  // for it.
  using Done = std::function<void(ports::AcceptOutcome)>;

  Intake(ports::Ledger& ledger, engine::WorkerPool& workers, model::ReplicaId replica,
         Milliseconds lease_ttl, Clock& clock, Threads& threads, Logger& logger,
         IntakeBounds bounds);
  ~Intake();

  void Start();
  // What is queued is still accepted and answered; later calls are refused.
  void Stop();

  // False: the queue is full (or stopping), nothing happened, and `done` is never called. The
  // service leases what it accepts to itself as far as workers are free.
  [[nodiscard]] bool Submit(ports::Submission submission, Done done);

  // Runs `call` on the intake's thread, after what was queued before it. False: as Submit().
  [[nodiscard]] bool Post(std::function<void()> call);

  // For tests and simulated worlds: handles one batch of what is queued now. False when nothing
  // was.
  bool RunOnce();

 private:
  struct Claim {
    ports::Submission submission;  // The intake's thread takes it out; nobody else reads it then.
    Digest fingerprint{};
    std::vector<Done> waiting;   // The first is the submitter's, the others joined it.
    std::function<void()> call;  // Instead of a submission.
  };
  using ClaimPointer = std::shared_ptr<Claim>;  // Shared: the queue and the in-flight map.
  using Key = std::pair<model::ProjectId, Digest>;

  std::vector<ClaimPointer> TakeBatch(bool wait);
  void Accept(std::vector<ClaimPointer>& claims);
  void Complete(Claim& claim, const ports::Submission& submission, ports::AcceptOutcome outcome,
                Instant asked);
  // After an error at commit: what the ledger really holds.
  ports::AcceptOutcome ReadAgain(const ports::Submission& submission, const Error& error);
  void Wake(const ports::Submission& submission, const ports::Accepted& accepted, Instant asked);

  ports::Ledger& ledger_;
  engine::WorkerPool& workers_;
  const model::ReplicaId replica_;
  const Milliseconds lease_ttl_;
  Clock& clock_;
  Threads& threads_;
  Logger& logger_;
  const IntakeBounds bounds_;
  std::unique_ptr<Monitor> monitor_;
  std::deque<ClaimPointer> queue_ GUARDED_BY(*monitor_);
  std::map<Key, ClaimPointer> in_flight_ GUARDED_BY(*monitor_);
  bool is_stopping_ GUARDED_BY(*monitor_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace vmonce::service
