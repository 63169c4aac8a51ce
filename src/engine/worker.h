// The worker: takes one leased operation and advances each of its items, step by step, recording
// every step under the fence. The only place that runs steps, and the only layer that retries them.
#pragma once

#include <stop_token>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/lease_keeper.h"
#include "engine/observer.h"
#include "engine/saga.h"
#include "ports/ledger.h"

namespace vmonce::engine {

struct WorkerBounds {
  BackoffLimits backoff;
  Milliseconds held_retry{};
  Milliseconds settle{};   // Between an undo and the next attempt.
  int step_failures = 0;   // Proven failures of a step before it is undone.
  int stuck_failures = 0;  // Failures of an undo, or looks without answer, before a person is told.
  // A record that tells of progress alone may ride with the next one for so long.
  Milliseconds record_within{};
};

// What all workers of a process share. All of it outlives them.
struct WorkerParts {
  ports::Ledger& ledger;
  const SagaTable& sagas;
  LeaseKeeper& leases;
  WorkObserver& observer;
  Clock& clock;
  Random& random;
  Logger& logger;
  model::ReplicaId replica;
  WorkerBounds bounds;
};

// Used by one thread at a time.
class Worker {
 public:
  explicit Worker(const WorkerParts& parts) : parts_(parts) {}

  // Advances an operation whose lease this process was granted by a call that began at `asked`,
  // until it ended, every item must wait, the lease is lost, or `stop` is requested (looked at
  // between steps). The lease is given back with the last record.
  void Run(model::Operation operation, Instant asked, const std::stop_token& stop = {});

  // For tests and simulated worlds: takes one due operation and runs it. False when nothing was
  // due.
  Result<bool> RunOnce(Milliseconds settle);

 private:
  WorkerParts parts_;
};

}  // namespace vmonce::engine
