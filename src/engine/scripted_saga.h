// For tests: a saga whose answers were written down beforehand, and what a worker needs around it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fake_clock.h"
#include "base/log.h"
#include "base/system.h"
#include "engine/fake_ledger.h"
#include "engine/worker.h"

namespace vmonce::engine {

// Always the same number.
class FixedRandom final : public Random {
 public:
  explicit FixedRandom(std::uint64_t value) : value_(value) {}
  void Fill(std::span<std::byte> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = i < sizeof value_ ? static_cast<std::byte>(value_ >> (8 * i)) : std::byte{0};
    }
  }

 private:
  const std::uint64_t value_;
};

class CountingObserver final : public WorkObserver {
 public:
  void StepTried(model::OperationKind, std::string_view step, std::string_view outcome,
                 Milliseconds) override {
    tried.push_back(std::string(step) + " " + std::string(outcome));
  }
  void OperationEnded(const model::Operation& operation) override { ended.push_back(operation); }

  std::vector<std::string> tried;
  std::vector<model::Operation> ended;
};

// Used by one thread at a time. It outlives the saga that it makes.
class ScriptedSaga {
 public:
  explicit ScriptedSaga(std::vector<std::string_view> steps) : steps_(std::move(steps)) {}

  // What the next tries answer, in turn; afterwards they are done.
  ScriptedSaga& Run(std::string_view step, StepResult result, int times = 1) {
    for (int i = 0; i < times; ++i) answers_[std::string(step)].push_back(result);
    return *this;
  }
  ScriptedSaga& Undo(std::string_view step, StepResult result, int times = 1) {
    return Run("undo " + std::string(step), std::move(result), times);
  }
  // Afterwards it goes on where the cursor stands.
  ScriptedSaga& Look(LookResult result, int times = 1) {
    for (int i = 0; i < times; ++i) looks_.push_back(result);
    return *this;
  }
  // Runs at the start of every try whose name this is ("b", "undo b", "look").
  ScriptedSaga& On(std::string_view name, std::function<void(const StepContext&)> what) {
    on_[std::string(name)] = std::move(what);
    return *this;
  }

  Saga Make() {
    Saga saga;
    saga.kind = model::OperationKind::kCreate;
    for (const std::string_view name : steps_) {
      saga.steps.push_back(
          {name, [this, name](const StepContext& c) { return Answer(c, std::string(name)); },
           [this, name](const StepContext& c) { return Answer(c, "undo " + std::string(name)); }});
    }
    saga.look = [this](const StepContext& c) {
      Called(c, "look");
      if (looks_.empty()) return LookResult{LookResult::Kind::kGoOn, c.item.step, "as recorded"};
      LookResult result = looks_.front();
      looks_.pop_front();
      return result;
    };
    return saga;
  }

  // Every try, in order; of a batch with the index: "b", "undo b", "look", "b#1".
  std::vector<std::string> calls;
  std::vector<std::string> memos;  // What each try of a step was handed.

 private:
  void Called(const StepContext& context, const std::string& name) {
    const bool is_batch = context.operation.items.size() > 1;
    calls.push_back(is_batch ? name + "#" + std::to_string(context.item.index) : name);
    if (const auto found = on_.find(name); found != on_.end()) found->second(context);
  }
  StepResult Answer(const StepContext& context, const std::string& name) {
    Called(context, name);
    memos.push_back(context.item.memo);
    const bool is_batch = context.operation.items.size() > 1;
    const std::string of_item = name + "#" + std::to_string(context.item.index);
    std::deque<StepResult>& answers = is_batch ? answers_[of_item] : answers_[name];
    if (answers.empty()) return StepResult::Done();
    StepResult result = answers.front();
    answers.pop_front();
    return result;
  }

  const std::vector<std::string_view> steps_;
  std::map<std::string, std::deque<StepResult>> answers_;
  std::map<std::string, std::function<void(const StepContext&)>> on_;
  std::deque<LookResult> looks_;
};

inline model::OperationId MadeUpOperation(std::uint8_t last) {
  model::OperationId id;
  id.value.bytes[0] = 2;
  id.value.bytes[15] = last;
  return id;
}

// A worker over a fake ledger, with a clock moved by hand. Backoffs are 7 ms unless another number
// is drawn.
struct WorkerRig {
  static constexpr Milliseconds kTtl{15'000};

  explicit WorkerRig(Saga saga, std::uint64_t drawn = 7) : random(drawn) {
    sagas.Add(std::move(saga));
  }

  // A due operation of so many items, each about a made-up subject.
  model::OperationId Accept(int items = 1, std::uint8_t last = 1) {
    model::Operation operation;
    operation.id = MadeUpOperation(last);
    operation.sealed_secrets = "sealed";
    for (int index = 0; index < items; ++index) {
      model::Item item;
      item.index = index;
      item.subject.bytes[0] = last;
      item.subject.bytes[15] = static_cast<std::uint8_t>(index + 1);
      operation.items.push_back(item);
    }
    ledger.Put(operation);
    return operation.id;
  }
  // One worker's run over what is due. False: nothing was.
  bool Step() {
    const Result<bool> ran = Worker(parts).RunOnce(Milliseconds(0));
    return ran.has_value() && *ran;
  }
  // Runs until the operation is finished, moving the clock on; a bound, not a wait.
  void RunToEnd(const model::OperationId& id, int most = 200) {
    for (int turn = 0; turn < most && !ledger.Row(id).finished; ++turn) {
      if (!Step()) clock.Advance(Milliseconds(10));
    }
  }

  FakeClock clock;
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Logger> logger = NewNullLogger();
  FixedRandom random;
  FakeLedger ledger{clock, *threads};
  SagaTable sagas;
  CountingObserver observer;
  LeaseKeeper leases{ledger, clock, *threads, *logger, {kTtl, Milliseconds(5'000)}};
  WorkerParts parts{ledger,
                    sagas,
                    leases,
                    observer,
                    clock,
                    random,
                    *logger,
                    model::ReplicaId{"r-0000000000000001"},
                    {{Milliseconds(250), Milliseconds(30'000)},
                     Milliseconds(200),
                     Milliseconds(1'000),
                     /*step_failures=*/5,
                     /*stuck_failures=*/8}};
};

}  // namespace vmonce::engine
