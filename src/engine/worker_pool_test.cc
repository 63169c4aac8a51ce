#include "engine/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>

#include "engine/scripted_saga.h"

namespace vmonce::engine {
namespace {

constexpr Milliseconds kTtl{15'000};

class QuietObserver final : public WorkObserver {
 public:
  void StepTried(model::OperationKind, std::string_view, std::string_view, Milliseconds) override {}
  void OperationEnded(const model::Operation&) override { ++ended; }
  std::atomic<int> ended = 0;
};

// Real threads and time; each step stands still while `is_open` is false.
struct Rig {
  explicit Rig(int workers, Milliseconds poll = Milliseconds(20)) {
    Saga saga;
    saga.kind = model::OperationKind::kCreate;
    for (const std::string_view name : {"a", "b"}) {
      saga.steps.push_back({name, [this](const StepContext&) { return Try(); }, nullptr});
    }
    sagas.Add(std::move(saga));
    pool = std::make_unique<WorkerPool>(parts, *threads, PoolBounds{workers, poll, {}});
  }
  ~Rig() {
    is_open = true;
    pool.reset();
  }

  StepResult Try() {
    ++begun;
    WaitFor([this] { return is_open.load(); });
    return StepResult::Done();
  }
  // Bounded: a state that never comes fails the test instead of hanging it.
  bool WaitFor(const std::function<bool()>& is_so) {
    for (int i = 0; i < 5'000; ++i) {
      if (is_so()) return true;
      threads->SleepFor(Milliseconds(1), {});
    }
    return false;
  }

  model::Operation Operation(std::uint8_t last, bool is_leased = false) {
    model::Operation operation;
    operation.id = MadeUpOperation(last);
    operation.items.emplace_back();
    if (is_leased) {
      operation.fence = {1};
      operation.lease_owner = parts.replica.value;
      operation.lease_until = clock->Now() + kTtl;
    }
    ledger.Put(operation);
    return operation;
  }

  std::unique_ptr<Clock> clock = NewSystemClock();
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Random> random = NewSystemRandom();
  std::unique_ptr<Logger> logger = NewNullLogger();
  FakeLedger ledger{*clock, *threads};
  SagaTable sagas;
  QuietObserver observer;
  LeaseKeeper leases{ledger, *clock, *threads, *logger, {kTtl, Milliseconds(5'000)}};
  WorkerParts parts{ledger,
                    sagas,
                    leases,
                    observer,
                    *clock,
                    *random,
                    *logger,
                    model::ReplicaId{"r-0000000000000001"},
                    {{Milliseconds(1), Milliseconds(2)}, Milliseconds(1), Milliseconds(0), 5, 8}};
  std::atomic<bool> is_open = true;
  std::atomic<int> begun = 0;
  std::unique_ptr<WorkerPool> pool;
};

TEST(WorkerPool, RunsWhatIsDueWithoutBeingTold) {
  Rig rig(2);
  for (std::uint8_t i = 1; i <= 5; ++i) rig.Operation(i);
  rig.pool->Start();
  EXPECT_TRUE(rig.WaitFor([&] { return rig.observer.ended == 5; }));
}

TEST(WorkerPool, RunsWhatIsHandedOverUnderTheLeaseItCameWith) {
  Rig rig(1);
  const model::Operation operation = rig.Operation(1, /*is_leased=*/true);
  rig.pool->Start();
  rig.pool->HandOver(operation, rig.clock->Monotonic());
  EXPECT_TRUE(rig.WaitFor([&] { return rig.observer.ended == 1; }));
  EXPECT_EQ(rig.ledger.Row(operation.id).fence, model::Fence{1});
}

TEST(WorkerPool, LooksAtOnceWhenItIsNotified) {
  Rig rig(1, /*poll=*/Milliseconds(600'000));
  rig.pool->Start();
  ASSERT_TRUE(rig.WaitFor([&] { return rig.ledger.Calls("NextDue") > 0; }));
  rig.Operation(1);
  rig.pool->Notify();
  EXPECT_TRUE(rig.WaitFor([&] { return rig.observer.ended == 1; }));
}

TEST(WorkerPool, WakesWhenTheNextOperationBecomesDue) {
  Rig rig(1, /*poll=*/Milliseconds(600'000));
  model::Operation later = rig.Operation(1);
  later.due = rig.clock->Now() + Milliseconds(60);
  rig.ledger.Put(later);
  rig.pool->Start();
  EXPECT_TRUE(rig.WaitFor([&] { return rig.observer.ended == 1; }));
  EXPECT_GE(rig.clock->Now(), later.due);
}

TEST(WorkerPool, TakesNoMoreThanItHasFreeWorkersFor) {
  Rig rig(2);
  rig.is_open = false;
  for (std::uint8_t i = 1; i <= 5; ++i) rig.Operation(i);
  rig.pool->Start();
  ASSERT_TRUE(rig.WaitFor([&] { return rig.begun == 2; }));
  EXPECT_EQ(rig.pool->FreeWorkers(), 0);
  int leased = 0;
  for (std::uint8_t i = 1; i <= 5; ++i) {
    if (rig.ledger.Row(MadeUpOperation(i)).lease_owner != model::kUnleased) ++leased;
  }
  EXPECT_EQ(leased, 2);
  rig.is_open = true;
  EXPECT_TRUE(rig.WaitFor([&] { return rig.observer.ended == 5; }));
  EXPECT_TRUE(rig.WaitFor([&] { return rig.pool->FreeWorkers() == 2; }));
}

TEST(WorkerPool, CountsWhatWaitsAsBusyAndIsNeverLessThanNoneFree) {
  Rig rig(2);
  EXPECT_EQ(rig.pool->FreeWorkers(), 2);
  for (std::uint8_t i = 1; i <= 3; ++i) {
    rig.pool->HandOver(rig.Operation(i, true), rig.clock->Monotonic());
  }
  EXPECT_EQ(rig.pool->FreeWorkers(), 0);
}

TEST(WorkerPool, GoesOnAfterTheLedgerFailed) {
  Rig rig(1);
  std::atomic<int> failures = 0;
  rig.ledger.before = [&](std::string_view call) -> std::optional<Error> {
    if (call != "NextDue" && call != "TakeDue") return std::nullopt;
    if (failures >= 6) return std::nullopt;
    if (++failures % 2 == 0 && call == "NextDue") return std::nullopt;
    return Error{ErrorCode::kUnavailable, "down"};
  };
  rig.Operation(1);
  rig.pool->Start();
  EXPECT_TRUE(rig.WaitFor([&] { return rig.observer.ended == 1; }));
  EXPECT_EQ(failures, 6);
}

TEST(WorkerPool, StopEndsAfterTheCurrentStepAndGivesTheLeaseBack) {
  Rig rig(1);
  rig.is_open = false;
  const model::Operation running = rig.Operation(1);
  rig.pool->Start();
  ASSERT_TRUE(rig.WaitFor([&] { return rig.begun == 1; }));
  std::atomic<bool> is_stopped = false;
  const std::unique_ptr<Thread> stopper = rig.threads->Spawn("stopper", [&](std::stop_token) {
    rig.pool->Stop();
    is_stopped = true;
  });
  rig.threads->SleepFor(Milliseconds(20), {});
  EXPECT_FALSE(is_stopped) << "a step is not torn off";
  rig.is_open = true;
  EXPECT_TRUE(rig.WaitFor([&] { return is_stopped.load(); }));
  stopper->Join();
  const model::Operation row = rig.ledger.Row(running.id);
  EXPECT_EQ(rig.begun, 1) << "the next step was not begun";
  EXPECT_EQ(row.items[0].step, 1);
  EXPECT_EQ(row.lease_owner, model::kUnleased);
}

TEST(WorkerPool, BeginsNothingThatIsHandedOverAfterItsStop) {
  Rig rig(1);
  rig.pool->Start();
  rig.pool->Stop();
  rig.pool->HandOver(rig.Operation(1, true), rig.clock->Monotonic());
  rig.pool->Stop();
  EXPECT_EQ(rig.begun, 0);
}

}  // namespace
}  // namespace vmonce::engine
