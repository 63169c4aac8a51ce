#include "service/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/check.h"
#include "service/service_rig.h"

namespace vmonce::service {
namespace {

using ports::Accepted;
using ports::AcceptOutcome;
using ports::Known;
using testing::ElementsAre;

// What one submitter was told, and how often.
struct Told {
  std::optional<AcceptOutcome> outcome;
  int times = 0;
  Intake::Done Done() {
    return [this](AcceptOutcome o) {
      outcome = std::move(o);
      ++times;
    };
  }
  std::string Kind() const {
    if (!outcome) return "nothing";
    if (!*outcome) return std::string(ToString(outcome->error().code));
    if (std::holds_alternative<Accepted>(**outcome)) return "accepted";
    if (std::holds_alternative<Known>(**outcome)) return "known";
    if (std::holds_alternative<ports::KnownTombstone>(**outcome)) return "tombstone";
    if (std::holds_alternative<ports::Joined>(**outcome)) return "joined";
    return "declined";
  }
  model::OperationId Operation() const {
    if (const auto* accepted = std::get_if<Accepted>(&**outcome)) return accepted->operation.id;
    return std::get<Known>(**outcome).operation.id;
  }
};

// Report 83
TEST(Intake, JoinsIdenticalClaimsInFlightIntoOne) {
  IntakeRig rig;
  Told first, second, third;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 7), first.Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(2, 7), second.Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(3, 7), third.Done()));
  EXPECT_TRUE(rig.intake.RunOnce());
  EXPECT_FALSE(rig.intake.RunOnce());
  ASSERT_EQ(rig.ledger.Batches().size(), 1u);
  EXPECT_EQ(rig.ledger.Batches()[0].size(), 1u);
  EXPECT_EQ(first.Kind(), "accepted");
  for (const Told* joined : {&second, &third}) {
    EXPECT_EQ(joined->Kind(), "known") << "as a later duplicate is told";
    EXPECT_EQ(joined->Operation(), first.Operation());
    EXPECT_EQ(std::get<Known>(**joined->outcome).vms.size(), 1u);
    EXPECT_EQ(joined->times, 1);
  }
}

TEST(Intake, DoesNotJoinAnotherBodyProjectOrWhatHasNoKey) {
  IntakeRig rig;
  Told told[5];
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 7), told[0].Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(2, 7, /*body=*/2), told[1].Done()));
  ports::Submission elsewhere = CreateOf(3, 7);
  elsewhere.operation.project = {"other"};
  ASSERT_TRUE(rig.intake.Submit(elsewhere, told[2].Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(4, std::nullopt), told[3].Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(5, std::nullopt), told[4].Done()));
  rig.intake.RunOnce();
  EXPECT_EQ(rig.ledger.Batches()[0].size(), 5u);
  EXPECT_EQ(told[0].Kind(), "accepted");
  EXPECT_EQ(told[1].Kind(), "known") << "the ledger tells the two apart";
  EXPECT_EQ(told[1].Operation(), told[0].Operation());
  for (int i = 2; i < 5; ++i) EXPECT_EQ(told[i].Kind(), "accepted") << i;
}

TEST(Intake, JoinsNothingToAClaimThatWasAnswered) {
  IntakeRig rig;
  Told first, second;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 7), first.Done()));
  rig.intake.RunOnce();
  ASSERT_TRUE(rig.intake.Submit(CreateOf(2, 7), second.Done()));
  EXPECT_EQ(second.Kind(), "nothing");
  rig.intake.RunOnce();
  EXPECT_EQ(second.Kind(), "known");
  EXPECT_EQ(rig.ledger.Batches().size(), 2u);
}

TEST(Intake, GivesOneTransactionNoMoreThanABatch) {
  IntakeRig rig({.batch = 2, .queue = 10});
  Told told[5];
  for (std::uint8_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(rig.intake.Submit(CreateOf(i, i), told[i].Done()));
  }
  while (rig.intake.RunOnce()) {
  }
  std::vector<std::size_t> sizes;
  for (const auto& batch : rig.ledger.Batches()) sizes.push_back(batch.size());
  EXPECT_THAT(sizes, ElementsAre(2u, 2u, 1u));
  for (const Told& t : told) EXPECT_EQ(t.Kind(), "accepted");
}

TEST(Intake, RefusesWhatDoesNotFitIntoTheQueueAndNeverCallsBack) {
  IntakeRig rig({.batch = 10, .queue = 2});
  Told first, second, third, joined;
  int posted = 0;
  EXPECT_TRUE(rig.intake.Submit(CreateOf(1, 1), first.Done()));
  EXPECT_TRUE(rig.intake.Submit(CreateOf(2, 2), second.Done()));
  EXPECT_FALSE(rig.intake.Submit(CreateOf(3, 3), third.Done()));
  EXPECT_FALSE(rig.intake.Post([&] { ++posted; }));
  EXPECT_TRUE(rig.intake.Submit(CreateOf(4, 1), joined.Done())) << "it takes no place of its own";
  while (rig.intake.RunOnce()) {
  }
  EXPECT_EQ(third.times, 0);
  EXPECT_EQ(posted, 0);
  EXPECT_EQ(joined.Kind(), "known");
  EXPECT_TRUE(rig.intake.Submit(CreateOf(3, 3), third.Done())) << "there is room again";
}

TEST(Intake, RunsPostedCallsAfterWhatWasQueuedBefore) {
  IntakeRig rig;
  Told told;
  std::string seen;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 1), told.Done()));
  ASSERT_TRUE(rig.intake.Post([&] { seen = told.Kind(); }));
  while (rig.intake.RunOnce()) {
  }
  EXPECT_EQ(seen, "accepted");
}

// --- Errors: COMMIT may fail with the row committed

// Report 74
TEST(Intake, ReadsAgainAfterAnUnknownCommitAndFindsItsOwn) {
  for (const bool has_key : {true, false}) {
    IntakeRig rig;
    rig.ledger.after = [](std::string_view call) -> std::optional<Error> {
      if (call != "Accept") return std::nullopt;
      return Error{ErrorCode::kUnknown, "commit failed"};
    };
    Told told, joined;
    const std::optional<std::uint8_t> key = has_key ? std::optional<std::uint8_t>(7) : std::nullopt;
    ASSERT_TRUE(rig.intake.Submit(CreateOf(1, key), told.Done()));
    if (has_key) {
      ASSERT_TRUE(rig.intake.Submit(CreateOf(2, key), joined.Done()));
    }
    rig.intake.RunOnce();
    EXPECT_EQ(told.Kind(), "accepted");
    EXPECT_EQ(told.Operation().value, MadeUpId(2, 1));
    EXPECT_EQ(std::get<Accepted>(**told.outcome).vms.size(), 1u);
    if (has_key) {
      EXPECT_EQ(joined.Kind(), "known");
    }
  }
}

TEST(Intake, ReadsAgainAfterAnUnknownCommitAndFindsAnothers) {
  IntakeRig rig;
  ports::Submission other = CreateOf(9, 7);
  rig.ledger.Put(other.operation);
  rig.ledger.before = [](std::string_view call) -> std::optional<Error> {
    if (call != "Accept") return std::nullopt;
    return Error{ErrorCode::kUnknown, "commit failed"};
  };
  Told told;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 7), told.Done()));
  rig.intake.RunOnce();
  EXPECT_EQ(told.Kind(), "known");
  EXPECT_EQ(told.Operation(), other.operation.id);
}

TEST(Intake, ReadsAgainAfterAnUnknownCommitAndFindsATombstone) {
  IntakeRig rig;
  rig.ledger.tombstones[Digest{7}] = {};
  rig.ledger.before = [](std::string_view call) -> std::optional<Error> {
    if (call != "Accept") return std::nullopt;
    return Error{ErrorCode::kUnknown, "commit failed"};
  };
  Told told;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 7), told.Done()));
  rig.intake.RunOnce();
  EXPECT_EQ(told.Kind(), "tombstone");
}

TEST(Intake, SaysThatNothingHappenedWhenNothingIsThereAfterAnUnknownCommit) {
  for (const std::optional<std::uint8_t> key : {std::optional<std::uint8_t>(7), {}}) {
    IntakeRig rig;
    rig.ledger.before = [](std::string_view call) -> std::optional<Error> {
      if (call != "Accept") return std::nullopt;
      return Error{ErrorCode::kUnknown, "commit failed"};
    };
    Told told;
    ASSERT_TRUE(rig.intake.Submit(CreateOf(1, key), told.Done()));
    rig.intake.RunOnce();
    EXPECT_EQ(told.Kind(), "unavailable");
  }
}

TEST(Intake, SaysThatItDoesNotKnowWhenItCannotReadAgain) {
  for (const std::optional<std::uint8_t> key : {std::optional<std::uint8_t>(7), {}}) {
    IntakeRig rig;
    rig.ledger.before = [](std::string_view) -> std::optional<Error> {
      return Error{ErrorCode::kUnknown, "the ledger is gone"};
    };
    Told told;
    ASSERT_TRUE(rig.intake.Submit(CreateOf(1, key), told.Done()));
    rig.intake.RunOnce();
    EXPECT_EQ(told.Kind(), "unknown");
    EXPECT_EQ(told.times, 1);
  }
}

TEST(Intake, AnswersEveryoneOfABatchThatTheLedgerRefuses) {
  IntakeRig rig;
  rig.ledger.before = [](std::string_view) -> std::optional<Error> {
    return Error{ErrorCode::kUnavailable, "down"};
  };
  Told first, joined, second;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 1), first.Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(2, 1), joined.Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(3, 3), second.Done()));
  rig.intake.RunOnce();
  for (const Told* told : {&first, &joined, &second}) {
    EXPECT_EQ(told->Kind(), "unavailable");
    EXPECT_EQ(told->times, 1);
  }
  EXPECT_EQ(rig.ledger.Calls("FindByKey"), 0) << "nothing happened: nothing to read";
  rig.ledger.before = nullptr;
  Told again;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(4, 1), again.Done()));
  rig.intake.RunOnce();
  EXPECT_EQ(again.Kind(), "accepted") << "the key was not used up";
}

TEST(Intake, TellsWhoJoinedOfARefusal) {
  IntakeRig rig;
  rig.ledger.on_accept = [](const ports::Submission&) -> std::optional<AcceptOutcome> {
    return ports::Declined{ports::DeclineReason::kNameTaken, {}, {}, "web"};
  };
  Told first, joined;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 1), first.Done()));
  ASSERT_TRUE(rig.intake.Submit(CreateOf(2, 1), joined.Done()));
  rig.intake.RunOnce();
  EXPECT_EQ(first.Kind(), "declined");
  EXPECT_EQ(joined.Kind(), "declined");
}

// --- Leases and waking

TEST(Intake, LeasesToItselfOnlyAsManyAsWorkersAreFree) {
  IntakeRig rig({.batch = 64, .queue = 64}, /*workers=*/2);
  Told told[5];
  for (std::uint8_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(rig.intake.Submit(CreateOf(i, i), told[i].Done()));
  }
  rig.intake.RunOnce();
  int leased = 0;
  for (const Told& t : told) {
    if (std::get<Accepted>(**t.outcome).operation.lease_owner == rig.parts.replica.value) ++leased;
  }
  EXPECT_EQ(leased, 2);
  EXPECT_EQ(rig.pool.FreeWorkers(), 0) << "both were handed over";
  Told late;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(9, 9), late.Done()));
  rig.intake.RunOnce();
  EXPECT_EQ(std::get<Accepted>(**late.outcome).operation.lease_owner, model::kUnleased);
}

TEST(Intake, HandsOverNothingThatItDidNotAccept) {
  IntakeRig rig({.batch = 64, .queue = 64}, /*workers=*/2);
  rig.ledger.Put(CreateOf(9, 7).operation);
  Told told;
  ASSERT_TRUE(rig.intake.Submit(CreateOf(1, 7), told.Done()));
  rig.intake.RunOnce();
  EXPECT_EQ(told.Kind(), "known");
  EXPECT_EQ(rig.pool.FreeWorkers(), 2);
}

TEST(Intake, WakesWhoeverWorksOnAVmThatWasJustMarked) {
  IntakeRig rig;
  model::Vm vm;
  vm.id = {MadeUpId(1, 1)};
  vm.holder = model::OperationId{MadeUpId(2, 5)};
  rig.ledger.Put(vm);
  ports::Submission removal = CreateOf(1, std::nullopt);
  removal.operation.kind = model::OperationKind::kDelete;
  removal.change = ports::DeleteVm{vm.id, {}};
  Told told;
  ASSERT_TRUE(rig.intake.Submit(removal, told.Done()));
  rig.intake.RunOnce();
  EXPECT_THAT(rig.ledger.MadeDue(), ElementsAre(*vm.holder));
}

// --- The thread

TEST(Intake, StopAnswersWhatIsQueuedAndRefusesWhatComesLater) {
  IntakeRig rig({.batch = 1, .queue = 64});
  std::atomic<int> answered = 0;
  std::atomic<bool> may_commit = false;
  rig.ledger.before = [&](std::string_view) -> std::optional<Error> {
    for (int i = 0; i < 5'000 && !may_commit; ++i) rig.threads->SleepFor(Milliseconds(1), {});
    return std::nullopt;
  };
  rig.intake.Start();
  for (std::uint8_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(rig.intake.Submit(CreateOf(i, i), [&](const AcceptOutcome& outcome) {
      if (outcome) ++answered;
    }));
  }
  ASSERT_TRUE(rig.intake.Post([&] { ++answered; }));
  EXPECT_EQ(answered, 0);
  may_commit = true;
  rig.intake.Stop();
  EXPECT_EQ(answered, 7);
  Told late;
  EXPECT_FALSE(rig.intake.Submit(CreateOf(9, 9), late.Done()));
  EXPECT_FALSE(rig.intake.Post([] {}));
  EXPECT_EQ(late.times, 0);
}

// Report 85: a storm of one new key is one row, and everyone is answered.
TEST(Intake, AnswersAStormOfOneKeyWithOneOperation) {
  IntakeRig rig;
  rig.intake.Start();
  std::atomic<int> accepted = 0;
  std::atomic<int> known = 0;
  std::vector<std::unique_ptr<Thread>> clients;
  for (int client = 0; client < 8; ++client) {
    clients.push_back(rig.threads->Spawn("client", [&, client](std::stop_token) {
      for (int i = 0; i < 50; ++i) {
        const auto last = static_cast<std::uint8_t>(client * 30 + i % 30);
        CHECK(rig.intake.Submit(CreateOf(last, 7), [&](const AcceptOutcome& outcome) {
          if (!outcome) return;
          if (std::holds_alternative<Accepted>(*outcome)) ++accepted;
          if (std::holds_alternative<Known>(*outcome)) ++known;
        }));
      }
    }));
  }
  for (const auto& client : clients) client->Join();
  rig.intake.Stop();
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(known, 8 * 50 - 1);
}

}  // namespace
}  // namespace vmonce::service
