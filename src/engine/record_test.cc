// What a worker does when the ledger, or its lease, does not go along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/scripted_saga.h"

namespace vmonce::engine {
namespace {

using model::ItemPhase;
using model::OperationState;
using ports::AdvanceOutcome;
using testing::ElementsAre;

const std::vector<std::string_view> kSteps = {"a", "b", "c"};

StepResult Unavailable() { return StepResult::Unavailable("hypervisor_unavailable", "down"); }
StepResult Refused() { return StepResult::Refused("hypervisor_refused", "never"); }

// Each record of a run that goes forward, fails at c and is undone: a, b, the turn, three undos,
// the end. At each, the lease is found lost, or the outcome stays unknown: nothing is taken back on
// a commit in doubt (report 137).
TEST(Record, LostAnywhereDropsEverythingAndTouchesNothingMore) {
  const std::vector<Result<AdvanceOutcome>> answers = {AdvanceOutcome::kLost,
                                                       Fail(ErrorCode::kUnknown, "commit failed"),
                                                       Fail(ErrorCode::kUnavailable, "disk full")};
  constexpr int kRecords = 7;
  for (const Result<AdvanceOutcome>& answer : answers) {
    for (int lost = 1; lost <= kRecords; ++lost) {
      ScriptedSaga script(kSteps);
      script.Run("c", Refused());
      WorkerRig rig(script.Make());
      const model::OperationId id = rig.Accept();
      int records = 0;
      std::size_t calls = 0;
      rig.ledger.on_record = [&](const ports::Advance&) -> std::optional<Result<AdvanceOutcome>> {
        if (++records != lost) return std::nullopt;
        calls = script.calls.size();
        return answer;
      };
      rig.Step();
      EXPECT_EQ(records, lost) << "nothing more is recorded";
      EXPECT_EQ(script.calls.size(), calls) << "nothing more is tried";
      EXPECT_FALSE(rig.ledger.Row(id).finished);
      EXPECT_TRUE(rig.observer.ended.empty());
      // Whoever takes it over when the lease has run out brings it to its end.
      rig.ledger.on_record = nullptr;
      EXPECT_FALSE(rig.Step()) << "the lease still stands";
      rig.clock.Advance(WorkerRig::kTtl);
      rig.RunToEnd(id);
      EXPECT_TRUE(rig.ledger.Row(id).finished) << lost;
    }
  }
}

TEST(Record, OfProgressRidesWithTheNextAndKeepsItsLines) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  rig.parts.bounds.record_within = Milliseconds(10);
  script.On("c", [&](const StepContext&) { rig.clock.Advance(Milliseconds(3)); });
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  const std::vector<ports::Advance> advances = rig.ledger.Advances();
  ASSERT_EQ(advances.size(), 1u);
  const auto& lines = advances.front().timeline;
  ASSERT_EQ(lines.size(), 4u) << "the look and three steps";
  EXPECT_EQ(lines[1].detail, "a");
  EXPECT_EQ(lines[3].at - lines[1].at, Milliseconds(3)) << "each with its own time";
}

TEST(Record, OfProgressWaitsNoLongerThanItMay) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  rig.parts.bounds.record_within = Milliseconds(10);
  script.On("b", [&](const StepContext&) { rig.clock.Advance(Milliseconds(10)); });
  rig.Accept();
  rig.Step();
  ASSERT_EQ(rig.ledger.Advances().size(), 2u) << "after b, with a, and at the end";
  EXPECT_EQ(rig.ledger.Advances().front().items.front().step, 2);
}

TEST(Record, OfProgressIsWrittenBeforeAStepThatLastedOrHasNotRunYet) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  StepTimes times;
  rig.parts.step_times = &times;
  rig.parts.bounds.record_within = Milliseconds(10);
  std::vector<std::size_t> records;
  script.On("b", [&](const StepContext&) { records.push_back(rig.ledger.Advances().size()); });
  script.On("c", [&](const StepContext&) {
    records.push_back(rig.ledger.Advances().size());
    rig.clock.Advance(Milliseconds(10));
  });
  rig.Accept();
  rig.Step();
  EXPECT_EQ(records, (std::vector<std::size_t>{1, 2})) << "nothing is known of b and c";
  const std::size_t before = rig.ledger.Advances().size();
  records.clear();
  rig.Accept();
  rig.Step();
  EXPECT_EQ(records, (std::vector<std::size_t>{before, before + 1})) << "b is short, c lasted";
}

TEST(Record, OfAChangeIsWrittenBeforeTheNextStep) {
  ScriptedSaga script(kSteps);
  StepResult placed = StepResult::Done();
  placed.events.emplace_back();
  script.Run("a", placed);
  WorkerRig rig(script.Make());
  rig.parts.bounds.record_within = Milliseconds(10);
  std::size_t before_b = 0;
  script.On("b", [&](const StepContext&) { before_b = rig.ledger.Advances().size(); });
  rig.Accept();
  rig.Step();
  EXPECT_EQ(before_b, 1u);
  EXPECT_EQ(rig.ledger.Advances().size(), 2u);
}

TEST(Record, OfProgressIsNotForgottenWhenTheNextStepFails) {
  ScriptedSaga script(kSteps);
  script.Run("b", Unavailable());
  WorkerRig rig(script.Make());
  rig.parts.bounds.record_within = Milliseconds(10);
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).items[0].step, 1);
  EXPECT_EQ(rig.ledger.Row(id).items[0].failures, 1);
}

TEST(Record, OfAnOutdatedFenceIsLost) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  script.On("b", [&](const StepContext&) {
    model::Operation row = rig.ledger.Row(id);
    ++row.fence.value;
    rig.ledger.Put(row);
  });
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b"));
  EXPECT_EQ(rig.ledger.Row(id).items[0].step, 1);
}

// Report 31
TEST(Record, IsNotMadeWhenTheLeaseRanOutDuringACall) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  int late = 0;
  script.On("b", [&](const StepContext&) {
    if (++late == 1) rig.clock.Advance(WorkerRig::kTtl);
  });
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b"));
  EXPECT_EQ(rig.ledger.Calls("Record"), 1) << "that of a";
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_EQ(std::ranges::count(script.calls, "a"), 1);
  EXPECT_EQ(std::ranges::count(script.calls, "b"), 2);
}

TEST(Record, OfALeaseThatTheLedgerTookAwayMeanwhileIsNotMade) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  script.On("b", [&](const StepContext&) {
    model::Operation row = rig.ledger.Row(id);
    ++row.fence.value;
    rig.ledger.Put(row);
    rig.leases.RunOnce();
  });
  rig.Step();
  EXPECT_EQ(rig.ledger.Calls("Record"), 1) << "that of a";
}

TEST(Record, OfARenewedLeaseIsMadeHoweverLongTheCallTook) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  script.On("b", [&](const StepContext&) {
    for (int renewal = 0; renewal < 10; ++renewal) {
      rig.clock.Advance(Milliseconds(5'000));
      rig.leases.RunOnce();
    }
  });
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
}

TEST(Record, NoEffectIsBegunAfterTheLeaseRanOut) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  rig.Accept();
  script.On("look", [&](const StepContext&) { rig.clock.Advance(WorkerRig::kTtl); });
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look"));
  EXPECT_EQ(rig.ledger.Calls("Record"), 0);
}

TEST(Record, WaitsWhileAnotherOperationHoldsTheSubject) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  int held = 0;
  rig.ledger.on_record = [&](const ports::Advance&) -> std::optional<Result<AdvanceOutcome>> {
    if (++held == 1) return AdvanceOutcome::kHeld;
    return std::nullopt;
  };
  rig.Step();
  const model::Operation row = rig.ledger.Row(id);
  EXPECT_EQ(row.items[0].step, 0) << "what was declined has not happened";
  EXPECT_EQ(row.items[0].failures, 0);
  EXPECT_EQ(row.due, rig.clock.Now() + Milliseconds(200));
  EXPECT_THAT(rig.ledger.Story(), ElementsAre("looked"));
  rig.RunToEnd(id);
  EXPECT_EQ(std::ranges::count(script.calls, "a"), 2);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
}

TEST(Record, CountsAHostWithoutRoomAsAFailureThatMayPass) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.ledger.on_record =
      [&](const ports::Advance& advance) -> std::optional<Result<AdvanceOutcome>> {
    if (advance.items[0].phase == ItemPhase::kForward && advance.items[0].step == 1) {
      return AdvanceOutcome::kNoRoom;
    }
    return std::nullopt;
  };
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).items[0].failures, 1);
  EXPECT_EQ(rig.ledger.Row(id).items[0].step, 0);
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
  EXPECT_EQ(rig.ledger.Row(id).failure->code, "no_capacity");
  EXPECT_TRUE(rig.ledger.Row(id).failure->passing);
  EXPECT_EQ(std::ranges::count(script.calls, "a"), 5);
}

struct MarkedSaga {
  ScriptedSaga script{kSteps};
  FakeLedger* ledger = nullptr;
  bool is_settled = true;
  Saga Make() {
    Saga saga = script.Make();
    saga.is_marked = [this](const StepContext& c) -> Result<bool> {
      return ledger->IsMarked(c.item.subject);
    };
    saga.is_settled = [this](const StepContext&) { return is_settled; };
    return saga;
  }
};

// Report 98
TEST(Mark, BetweenAnEffectAndItsRecordEndsTheItemAsCancelled) {
  MarkedSaga marked;
  WorkerRig rig(marked.Make());
  marked.ledger = &rig.ledger;
  const model::OperationId id = rig.Accept();
  marked.script.On("b", [&](const StepContext& c) { rig.ledger.Mark(c.item.subject); });
  rig.Step();
  EXPECT_THAT(marked.script.calls, ElementsAre("look", "a", "b"));
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kCancelled);
  EXPECT_EQ(rig.ledger.Row(id).items[0].step, 1) << "b was not recorded";
  EXPECT_EQ(rig.ledger.Row(id).sealed_secrets, "");
}

TEST(Mark, IsSeenBeforeTheNextEffectAndDuringABackoff) {
  MarkedSaga marked;
  marked.script.Run("b", Unavailable());
  WorkerRig rig(marked.Make(), /*drawn=*/200);
  marked.ledger = &rig.ledger;
  const model::OperationId id = rig.Accept();
  rig.Step();
  model::Operation row = rig.ledger.Row(id);
  rig.ledger.Mark(row.items[0].subject);
  row.due = rig.clock.Now();
  rig.ledger.Put(row);
  rig.Step();
  EXPECT_THAT(marked.script.calls, ElementsAre("look", "a", "b"));
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kCancelled);
}

TEST(Mark, OfAnItemBeingUndoneEndsItAsCancelled) {
  MarkedSaga marked;
  marked.script.Run("b", Refused()).Undo("b", Unavailable(), 100);
  WorkerRig rig(marked.Make());
  marked.ledger = &rig.ledger;
  const model::OperationId id = rig.Accept();
  rig.Step();
  rig.ledger.Mark(rig.ledger.Row(id).items[0].subject);
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kCancelled);
}

TEST(Mark, WaitsUntilEveryEarlierCallHasReturned) {
  MarkedSaga marked;
  marked.is_settled = false;
  WorkerRig rig(marked.Make());
  marked.ledger = &rig.ledger;
  const model::OperationId id = rig.Accept();
  rig.ledger.Mark(rig.ledger.Row(id).items[0].subject);
  rig.Step();
  EXPECT_TRUE(marked.script.calls.empty());
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kVerifying);
  marked.is_settled = true;
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kCancelled);
}

TEST(Mark, ThatCannotBeReadLetsNothingHappenAndIsAskedForLater) {
  ScriptedSaga script(kSteps);
  Saga saga = script.Make();
  int asked = 0;
  saga.is_marked = [&](const StepContext&) -> Result<bool> {
    if (++asked == 1) return Fail(ErrorCode::kUnavailable, "down");
    return false;
  };
  WorkerRig rig(std::move(saga));
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_TRUE(script.calls.empty());
  EXPECT_GT(rig.ledger.Row(id).due, rig.clock.Now()) << "not at once again";
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
}

// --- Batches

TEST(Batch, OfWhichOneWaitsGoesOnWithTheOthers) {
  ScriptedSaga script(kSteps);
  script.Run("b#1", Unavailable());
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept(3);
  rig.Step();
  const model::Operation row = rig.ledger.Row(id);
  EXPECT_EQ(row.items[0].phase, ItemPhase::kDone);
  EXPECT_EQ(row.items[1].phase, ItemPhase::kForward);
  EXPECT_EQ(row.items[1].step, 1);
  EXPECT_EQ(row.items[2].phase, ItemPhase::kDone);
  EXPECT_EQ(row.state, OperationState::kRunning);
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_EQ(std::ranges::count(script.calls, "a#1"), 1);
}

TEST(Batch, IsDueWhenTheFirstOfItsWaitingItemsIs) {
  ScriptedSaga script(kSteps);
  script.Run("a#0", StepResult::Again(Milliseconds(900)));
  script.Run("a#1", StepResult::Again(Milliseconds(300)));
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept(2);
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).due, rig.clock.Now() + Milliseconds(300));
}

struct Mix {
  std::string name;
  std::vector<char> ends;  // d: done, p: failed and may pass, f: failed for good, c: cancelled.
  OperationState state;
  std::string failure;
  bool keeps_secrets;
};

TEST(Batch, EndsByWhatItsItemsEndedAs) {
  const std::vector<Mix> mixes = {
      {"all done", {'d', 'd'}, OperationState::kSucceeded, "", false},
      {"done and cancelled", {'c', 'd'}, OperationState::kSucceeded, "", false},
      {"all cancelled", {'c', 'c'}, OperationState::kCancelled, "", false},
      {"one may pass", {'d', 'p'}, OperationState::kFailed, "passes", true},
      {"one never", {'f', 'd'}, OperationState::kFailed, "never", false},
      {"what may pass is told first", {'f', 'p'}, OperationState::kFailed, "passes", true},
      {"failed and cancelled", {'c', 'f'}, OperationState::kFailed, "never", false},
      {"all three", {'d', 'c', 'p'}, OperationState::kFailed, "passes", true},
  };
  for (const Mix& mix : mixes) {
    MarkedSaga marked;
    // One item would be no batch to the script: a done one is added.
    for (std::size_t i = 0; i < mix.ends.size(); ++i) {
      const std::string step = "b#" + std::to_string(i);
      if (mix.ends[i] == 'f') marked.script.Run(step, StepResult::Refused("never", "x"));
      if (mix.ends[i] == 'p') marked.script.Run(step, StepResult::Unavailable("passes", "x"), 5);
    }
    WorkerRig rig(marked.Make());
    marked.ledger = &rig.ledger;
    const model::OperationId id = rig.Accept(static_cast<int>(mix.ends.size()));
    for (std::size_t i = 0; i < mix.ends.size(); ++i) {
      if (mix.ends[i] == 'c') rig.ledger.Mark(rig.ledger.Row(id).items[i].subject);
    }
    rig.RunToEnd(id);
    const model::Operation row = rig.ledger.Row(id);
    EXPECT_EQ(row.state, mix.state) << mix.name;
    EXPECT_EQ(row.failure ? row.failure->code : "", mix.failure) << mix.name;
    EXPECT_EQ(!row.sealed_secrets.empty(), mix.keeps_secrets) << mix.name;
    EXPECT_EQ(rig.observer.ended.size(), 1u) << mix.name;
  }
}

TEST(Batch, TellsOfTheEndOnceWithItsLastItem) {
  ScriptedSaga script(kSteps);
  Saga saga = script.Make();
  saga.on_finished = [](const model::Operation& operation) {
    model::Event event;
    event.type = "operation." + std::string(ToString(operation.state));
    return std::vector{event};
  };
  WorkerRig rig(std::move(saga));
  rig.Accept(2);
  rig.Step();
  std::vector<std::string> events;
  for (const ports::Advance& advance : rig.ledger.Advances()) {
    for (const model::Event& event : advance.events) events.push_back(event.type);
  }
  EXPECT_THAT(events, ElementsAre("operation.succeeded"));
}

// --- The story and the end of a process

TEST(Story, KeepsAFailureThatFollowsARecordedStep) {
  ScriptedSaga script(kSteps);
  script.Run("b", Unavailable());
  WorkerRig rig(script.Make());
  rig.Accept();
  rig.Step();
  EXPECT_THAT(rig.ledger.Story(), ElementsAre("looked", "step_done", "step_unavailable"));
}

TEST(Stop, LeavesTheOperationAfterItsStepAndGivesTheLeaseBack) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept(2);
  std::stop_source stop;
  script.On("b", [&](const StepContext&) { stop.request_stop(); });
  const Instant asked = rig.clock.Monotonic();
  auto taken = rig.ledger.TakeDue(rig.parts.replica, WorkerRig::kTtl, Milliseconds(0), 1);
  Worker(rig.parts).Run(taken->front(), asked, stop.get_token());
  EXPECT_THAT(script.calls, ElementsAre("look#0", "a#0", "b#0"));
  EXPECT_EQ(rig.ledger.Row(id).lease_owner, model::kUnleased);
  EXPECT_EQ(rig.ledger.Row(id).due, rig.clock.Now());
  EXPECT_EQ(rig.ledger.Row(id).items[0].step, 2);
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_EQ(std::ranges::count(script.calls, "b#0"), 1);
}

}  // namespace
}  // namespace vmonce::engine
