// One worker's runs over one operation: every answer a step can give, forward and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/scripted_saga.h"

namespace vmonce::engine {
namespace {

using model::ItemPhase;
using model::OperationState;
using testing::ElementsAre;
using Kind = StepResult::Kind;

const std::vector<std::string_view> kSteps = {"a", "b", "c"};

StepResult Unknown() { return {Kind::kUnknown, "no answer"}; }
StepResult Unavailable() { return StepResult::Unavailable("hypervisor_unavailable", "down"); }
StepResult Refused() { return StepResult::Refused("hypervisor_refused", "never"); }
StepResult Fenced() { return {Kind::kFenced, "fenced"}; }
StepResult Rewind() { return {Kind::kRewind, "there again"}; }
LookResult GoOn(int step) { return {LookResult::Kind::kGoOn, step, "seen"}; }
LookResult NoAnswer() { return {LookResult::Kind::kNoAnswer, 0, "blind"}; }

TEST(Run, LooksThenDoesEveryStepAndRecordsEach) {
  ScriptedSaga script(kSteps);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  EXPECT_TRUE(rig.Step());
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b", "c"));
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_EQ(rig.ledger.Row(id).lease_owner, model::kUnleased);
  EXPECT_EQ(rig.ledger.Advances().size(), 3u);
  EXPECT_THAT(rig.observer.tried, ElementsAre("a done", "b done", "c done"));
  ASSERT_EQ(rig.observer.ended.size(), 1u);
  EXPECT_EQ(rig.observer.ended.front().state, OperationState::kSucceeded);
}

TEST(Run, GoesOnWhereTheLookSays) {
  ScriptedSaga script(kSteps);
  script.Look(GoOn(2));
  WorkerRig rig(script.Make());
  rig.Accept();
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look", "c"));
}

TEST(Run, HandsTheMemoOfAStepInProgressToItsNextTryAndCountsNoFailure) {
  ScriptedSaga script(kSteps);
  script.Run("b", StepResult::Again(Milliseconds(300), "asked", "asked the guest"), 10);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).due, rig.clock.Now() + Milliseconds(300));
  EXPECT_EQ(rig.ledger.Row(id).items[0].memo, "asked");
  EXPECT_EQ(rig.ledger.Row(id).items[0].failures, 0);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kRunning);
  rig.RunToEnd(id, 1'000);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_EQ(script.memos[1], "") << "the first try of b";
  EXPECT_EQ(script.memos[2], "asked");
  EXPECT_EQ(script.memos.back(), "") << "c begins anew";
}

TEST(Run, WaitsLongerAfterEveryFailureAndForgetsThemWhenTheStepIsDone) {
  ScriptedSaga script(kSteps);
  script.Run("b", Unavailable(), 4);
  WorkerRig rig(script.Make(), /*drawn=*/29'999);
  const model::OperationId id = rig.Accept();
  std::vector<Milliseconds> waits;
  for (int failure = 1; failure <= 4; ++failure) {
    rig.Step();
    const model::Operation row = rig.ledger.Row(id);
    EXPECT_EQ(row.items[0].failures, failure);
    waits.push_back(std::chrono::duration_cast<Milliseconds>(row.due - rig.clock.Now()));
    rig.clock.Advance(waits.back());
  }
  // What was drawn, within 250, 500, 1000 and 2000 ms.
  EXPECT_THAT(waits, ElementsAre(Milliseconds(29'999 % 251), Milliseconds(29'999 % 501),
                                 Milliseconds(29'999 % 1001), Milliseconds(29'999 % 2001)));
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_EQ(rig.ledger.Row(id).items[0].failures, 0);
  EXPECT_EQ(rig.ledger.Row(id).items[0].failure, std::nullopt);
}

TEST(Run, TriesNothingBeforeTheBackoffIsOver) {
  ScriptedSaga script(kSteps);
  script.Run("a", Unavailable());
  WorkerRig rig(script.Make());
  rig.Accept();
  rig.Step();
  EXPECT_FALSE(rig.Step());
  rig.clock.Advance(Milliseconds(6));
  EXPECT_FALSE(rig.Step());
  rig.clock.Advance(Milliseconds(1));
  EXPECT_TRUE(rig.Step());
}

TEST(Run, UndoesAfterTheLastAllowedFailureAndTheCauseMayPass) {
  ScriptedSaga script(kSteps);
  script.Run("b", Unavailable(), 5);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.RunToEnd(id);
  const model::Operation row = rig.ledger.Row(id);
  EXPECT_EQ(row.state, OperationState::kFailed);
  EXPECT_EQ(row.failure, (model::Failure{"hypervisor_unavailable", "down", true}));
  EXPECT_EQ(row.items[0].phase, ItemPhase::kFailed);
  EXPECT_EQ(row.items[0].not_before, rig.clock.Now() + Milliseconds(1'000)) << "the settle time";
  EXPECT_EQ(row.sealed_secrets, "sealed") << "a new attempt needs them";
  EXPECT_THAT(script.calls,
              ElementsAre("look", "a", "b", "b", "b", "b", "b", "undo c", "undo b", "undo a"));
}

TEST(Run, UndoesARefusalAtOnceAndForGood) {
  ScriptedSaga script(kSteps);
  script.Run("b", Refused());
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.Step();
  const model::Operation row = rig.ledger.Row(id);
  EXPECT_EQ(row.state, OperationState::kFailed);
  EXPECT_EQ(row.failure, (model::Failure{"hypervisor_refused", "never", false}));
  EXPECT_EQ(row.sealed_secrets, "");
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b", "undo c", "undo b", "undo a"));
}

TEST(Run, LooksAfterAnUnknownAnswerBeforeAnythingElse) {
  ScriptedSaga script(kSteps);
  script.Run("b", Unknown()).Look(GoOn(0)).Look(GoOn(2));
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kVerifying);
  rig.RunToEnd(id);
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b", "look", "c"));
  EXPECT_EQ(rig.ledger.Row(id).items[0].failures, 0);
}

TEST(Run, TakesAnUnknownTryForAFailureWhenTheLookFindsNothing) {
  ScriptedSaga script(kSteps);
  script.Run("b", Unknown(), 100);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
  EXPECT_TRUE(rig.ledger.Row(id).failure->passing);
  EXPECT_EQ(std::ranges::count(script.calls, "b"), 5);
}

// A machine that dies at every start is never there: what is done again on the way to the next try
// does not make that try the first one.
TEST(Run, CountsUnknownTriesThoughEveryLookSetsTheCursorBack) {
  ScriptedSaga script(kSteps);
  script.Run("c", Unknown(), 100).Look(GoOn(0)).Look(GoOn(1), 100);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
  EXPECT_EQ(std::ranges::count(script.calls, "c"), 5);
  EXPECT_EQ(rig.ledger.Row(id).failure->detail, "no answer");
}

// The cursor was set back by a look, and the step it was set back to is refused: what later steps
// had made before is taken back too.
TEST(Run, UndoesWhatWasMadeBeforeALookSetTheCursorBack) {
  ScriptedSaga script(kSteps);
  script.Run("c", Unknown()).Look(GoOn(0)).Look(GoOn(0)).Run("a", StepResult::Done());
  script.Run("a", Refused());
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
  EXPECT_THAT(script.calls,
              ElementsAre("look", "a", "b", "c", "look", "a", "undo c", "undo b", "undo a"));
}

TEST(Run, TellsWhenNobodyCanSeeAndTriesNothing) {
  ScriptedSaga script(kSteps);
  script.Look(NoAnswer(), 8);
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  for (int look = 1; look <= 8; ++look) {
    EXPECT_FALSE(rig.ledger.Row(id).is_stuck) << look;
    rig.Step();
    EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kVerifying);
    rig.clock.Advance(Milliseconds(7));
  }
  EXPECT_TRUE(rig.ledger.Row(id).is_stuck);
  EXPECT_EQ(std::ranges::count(script.calls, "a"), 0);
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_FALSE(rig.ledger.Row(id).is_stuck);
}

TEST(Run, FailsForGoodWhenSomethingOfAnothersIsInTheWay) {
  ScriptedSaga script(kSteps);
  script.Look({LookResult::Kind::kConflict, 0, "a stranger's"});
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).failure, (model::Failure{"conflict", "a stranger's", false}));
  EXPECT_THAT(script.calls, ElementsAre("look", "undo a")) << "only what this attempt began";
}

TEST(Run, TouchesNothingMoreWhenAStepOrALookIsFenced) {
  {
    ScriptedSaga script(kSteps);
    script.Run("b", Fenced());
    WorkerRig rig(script.Make());
    rig.Accept();
    rig.Step();
    EXPECT_THAT(script.calls, ElementsAre("look", "a", "b"));
    EXPECT_EQ(rig.ledger.Calls("Record"), 1) << "that of a";
  }
  ScriptedSaga script(kSteps);
  script.Look({LookResult::Kind::kFenced, 0, "a higher fence"});
  WorkerRig rig(script.Make());
  rig.Accept();
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look"));
  EXPECT_EQ(rig.ledger.Calls("Record"), 0);
}

TEST(Run, StartsOverWhenSomethingIsThereAgain) {
  ScriptedSaga script(kSteps);
  script.Run("c", Rewind());
  Saga saga = script.Make();
  saga.may_fail = false;
  saga.look = nullptr;
  WorkerRig rig(std::move(saga));
  const model::OperationId id = rig.Accept();
  rig.RunToEnd(id);
  EXPECT_THAT(script.calls, ElementsAre("a", "b", "c", "a", "b", "c"));
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
}

TEST(Run, NeverGivesUpWhatMayNotFailAndTellsWhenItIsStuck) {
  ScriptedSaga script(kSteps);
  script.Run("b", Refused(), 4).Run("b", Unavailable(), 4).Run("b", Unknown(), 4);
  Saga saga = script.Make();
  saga.may_fail = false;
  saga.look = nullptr;
  WorkerRig rig(std::move(saga));
  const model::OperationId id = rig.Accept();
  for (int failure = 1; failure <= 12; ++failure) {
    rig.Step();
    EXPECT_EQ(rig.ledger.Row(id).is_stuck, failure >= 8) << failure;
    rig.clock.Advance(Milliseconds(7));
  }
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_FALSE(rig.ledger.Row(id).is_stuck);
  for (const std::string& call : script.calls) EXPECT_FALSE(call.starts_with("undo")) << call;
}

// --- Back

// Whoever acts on the subject next may believe that no call for it is out.
TEST(Run, DoesNotEndWhileAnEarlierCallIsOutAndSaysWhoseItIs) {
  ScriptedSaga script(kSteps);
  bool is_settled = false;
  Saga saga = script.Make();
  saga.is_settled = [&](const StepContext&) { return is_settled; };
  WorkerRig rig(std::move(saga));
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b"));
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kVerifying);
  EXPECT_EQ(rig.ledger.Row(id).items[0].call_left_by, rig.parts.replica.value);
  is_settled = true;
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kSucceeded);
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b", "c"));
}

TEST(Undo, IsTriedUntilItIsDoneWhateverItAnswers) {
  ScriptedSaga script(kSteps);
  script.Run("b", Refused())
      .Undo("b", Unavailable(), 3)
      .Undo("b", Unknown(), 3)
      .Undo("b", Refused(), 3)
      .Undo("b", StepResult::Again(Milliseconds(5), "half"));
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kVerifying);
  bool was_stuck = false;
  for (int turn = 0; turn < 100 && !rig.ledger.Row(id).finished; ++turn) {
    was_stuck = was_stuck || rig.ledger.Row(id).is_stuck;
    if (!rig.Step()) rig.clock.Advance(Milliseconds(1));
  }
  EXPECT_TRUE(was_stuck);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
  EXPECT_EQ(rig.ledger.Row(id).failure->detail, "never") << "the first cause";
  EXPECT_EQ(std::ranges::count(script.calls, "undo b"), 11);
  EXPECT_EQ(std::ranges::count(script.calls, "b"), 1) << "nothing is done forward again";
}

TEST(Undo, BeginsAnewWhenSomethingTurnedUpAgain) {
  ScriptedSaga script(kSteps);
  script.Run("b", Refused()).Undo("a", Rewind());
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  rig.RunToEnd(id);
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b", "undo c", "undo b", "undo a", "undo c",
                                        "undo b", "undo a"));
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
}

TEST(Undo, TouchesNothingMoreWhenItIsFenced) {
  ScriptedSaga script(kSteps);
  script.Run("b", Refused()).Undo("b", Fenced());
  WorkerRig rig(script.Make());
  rig.Accept();
  rig.Step();
  EXPECT_EQ(script.calls.back(), "undo b");
  EXPECT_EQ(rig.ledger.Calls("Record"), 3) << "a, the turn, and undo c";
}

TEST(Undo, WaitsUntilEveryEarlierCallHasReturned) {
  ScriptedSaga script(kSteps);
  script.Run("b", Refused());
  bool is_settled = false;
  Saga saga = script.Make();
  saga.is_settled = [&](const StepContext&) { return is_settled; };
  WorkerRig rig(std::move(saga));
  const model::OperationId id = rig.Accept();
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b"));
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kVerifying);
  EXPECT_EQ(rig.ledger.Row(id).due, rig.clock.Now() + Milliseconds(200));
  is_settled = true;
  rig.RunToEnd(id);
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
}

TEST(Undo, WaitsForTheSettleTimeOfACallWhoseProcessDied) {
  ScriptedSaga script(kSteps);
  script.Run("a", Refused());
  WorkerRig rig(script.Make());
  const model::OperationId id = rig.Accept();
  model::Operation row = rig.ledger.Row(id);
  row.items[0].unsettled_until = rig.clock.Now() + Milliseconds(1'000);
  rig.ledger.Put(row);
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look", "a"));
  rig.clock.Advance(Milliseconds(1'000));
  rig.Step();
  EXPECT_EQ(rig.ledger.Row(id).state, OperationState::kFailed);
}

TEST(Undo, PassesStepsThatHaveNothingToTakeBack) {
  ScriptedSaga script(kSteps);
  script.Run("b", Refused());
  Saga saga = script.Make();
  saga.steps[1].undo = nullptr;
  WorkerRig rig(std::move(saga));
  rig.Accept();
  rig.Step();
  EXPECT_THAT(script.calls, ElementsAre("look", "a", "b", "undo c", "undo a"));
}

}  // namespace
}  // namespace vmonce::engine
