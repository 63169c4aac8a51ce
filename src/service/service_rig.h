// For tests: what the service stands on, over a fake ledger and a clock moved by hand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fake_clock.h"
#include "base/log.h"
#include "base/system.h"
#include "engine/fake_ledger.h"
#include "engine/worker_pool.h"
#include "service/intake.h"

namespace vmonce::service {

class NoObserver final : public engine::WorkObserver {
 public:
  void StepTried(model::OperationKind, std::string_view, std::string_view, Milliseconds) override {}
  void OperationEnded(const model::Operation&) override {}
};

inline const model::ProjectId kProject{"default"};

inline Uuid MadeUpId(std::uint8_t kind, std::uint8_t last) {
  Uuid id;
  id.bytes[0] = kind;
  id.bytes[15] = last;
  return id;
}

inline ports::Submission CreateOf(std::uint8_t last, std::optional<std::uint8_t> key,
                                  std::uint8_t body = 1) {
  ports::Submission submission;
  submission.operation.id = {MadeUpId(2, last)};
  submission.operation.project = kProject;
  if (key) submission.operation.key_hash = Digest{*key};
  submission.operation.fingerprint = Digest{body};
  submission.operation.items.emplace_back().subject = MadeUpId(1, last);
  model::Vm vm;
  vm.id = {MadeUpId(1, last)};
  vm.project = kProject;
  vm.operation = submission.operation.id;
  submission.change = ports::CreateVms{.vms = {vm}, .demand = {}, .quota = {}, .capacity = {}};
  return submission;
}

// The pool is never started: what it is handed waits and counts as busy.
struct IntakeRig {
  explicit IntakeRig(IntakeBounds bounds = {.batch = 64, .queue = 1024}, int workers = 0)
      : pool(parts, *threads, {workers, Milliseconds(500), Milliseconds(0)}),
        intake(ledger, pool, parts.replica, Milliseconds(15'000), clock, *threads, *logger,
               bounds) {}

  FakeClock clock;
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Random> random = NewSystemRandom();
  std::unique_ptr<Logger> logger = NewNullLogger();
  engine::FakeLedger ledger{clock, *threads};
  engine::SagaTable sagas;
  NoObserver observer;
  engine::LeaseKeeper leases{
      ledger, clock, *threads, *logger, {Milliseconds(15'000), Milliseconds(5'000)}};
  engine::WorkerParts parts{
      ledger,
      sagas,
      leases,
      observer,
      clock,
      *random,
      *logger,
      model::ReplicaId{"r-0000000000000001"},
      {{Milliseconds(250), Milliseconds(30'000)}, Milliseconds(200), Milliseconds(0), 5, 8}};
  engine::WorkerPool pool;
  Intake intake;
};

}  // namespace vmonce::service
