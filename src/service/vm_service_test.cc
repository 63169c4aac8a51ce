// The gate from the known key on, over a fake ledger: which answer, and what it costs.
#include "service/vm_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "model/request_limits.h"
#include "service/service_rig.h"

namespace vmonce::service {
namespace {

using model::OperationState;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr std::string_view kSecret = "#cloud-config\npassword: hush\n";

struct Rig : IntakeRig {
  explicit Rig(IntakeBounds bounds = {.batch = 64, .queue = 1024}) : IntakeRig(bounds) {}

  static model::Image ImageOf(std::string name) {
    model::Image image;
    image.name = std::move(name);
    image.aliases = {"alias"};
    return image;
  }
  static CreateRequest RequestOf(const std::string& key, const model::CreateIntent& intent) {
    CreateRequest request;
    request.asked.caller.project = kProject;
    request.asked.key = model::IdempotencyKey{key};
    request.asked.request.method = "POST";
    request.asked.request.route = "/v1/vms";
    request.asked.request.body = boost::json::parse(model::Serialise(intent));
    request.asked.redacted = request.asked.request;
    request.asked.face = "rest";
    request.intent = intent;
    return request;
  }
  static model::CreateIntent IntentOf(const std::string& name, int count = 1) {
    model::CreateIntent intent;
    intent.name = name;
    intent.image = "tiny";
    intent.count = count;
    return intent;
  }
  Outcome Create(CreateRequest request) {
    return Answer([&](Done done) { service->Create(std::move(request), std::move(done)); });
  }
  Outcome Create(const std::string& key, const std::string& name, int count = 1) {
    return Create(RequestOf(key, IntentOf(name, count)));
  }
  Outcome Cancel(const model::OperationId& id, std::chrono::seconds wait = {}) {
    return Answer([&](Done done) { service->Cancel(AskedOf(wait), id, std::move(done)); });
  }
  static Asked AskedOf(std::chrono::seconds wait = {}) {
    Asked asked;
    asked.caller.project = kProject;
    asked.face = "rest";
    asked.wait = wait;
    return asked;
  }
  Outcome Answer(const std::function<void(Done)>& ask) {
    std::optional<Outcome> answer;
    ask([&](Outcome outcome) { answer = std::move(outcome); });
    while (!answer && intake.RunOnce()) {
    }
    CHECK_MSG(answer.has_value(), "no answer");
    return std::move(*answer);
  }
  void End(const model::OperationId& id, OperationState state,
           std::optional<model::Failure> failure = std::nullopt) {
    model::Operation row = ledger.Row(id);
    row.state = state;
    row.failure = std::move(failure);
    row.finished = clock.Now();
    ledger.Put(row);
  }
  void Delete(model::Vm vm) {
    vm.state = model::VmState::kDeleted;
    vm.deleted = clock.Now();
    ledger.Put(vm);
  }
  // A service of another process: nothing cached, other images.
  void Restart(std::vector<model::Image> known) {
    images = std::make_unique<ImageCatalog>(*threads, std::move(known));
    service = std::make_unique<VmService>(
        ServiceParts{ledger, intake, waiters, pool, *images, sealer, clock, *random, *threads,
                     *logger, [this] { return capacity; }},
        ServiceSettings{
            Quotas(ProjectQuota{{100, 100, 100'000, 100}}), 1'000, std::chrono::seconds(120), {}});
  }

  Waiters waiters{clock, *threads};
  Sealer sealer{std::string(32, 'k'), *random};
  Result<model::Resources> capacity = model::Resources{100, 100, 100'000, 100};
  std::unique_ptr<ImageCatalog> images;
  std::unique_ptr<VmService> service;
};

class VmServiceTest : public testing::Test {
 protected:
  VmServiceTest() { rig_.Restart({Rig::ImageOf("tiny")}); }
  Rig rig_;
};

TEST_F(VmServiceTest, FixesEveryNameOfABatchBeforeItIsAccepted) {
  CreateRequest request = Rig::RequestOf("key-1", Rig::IntentOf("web", 2));
  request.intent.image = "alias";
  request.user_data = kSecret;
  const Outcome answer = rig_.Create(std::move(request));
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->is_replay);
  const auto batch = rig_.ledger.Batches().at(0);
  const auto& create = std::get<ports::CreateVms>(batch.at(0).change);
  ASSERT_EQ(create.vms.size(), 2u);
  EXPECT_EQ(create.vms[0].name, "web-0");
  EXPECT_EQ(create.vms[1].spec.hostname, "web-1");
  EXPECT_EQ(create.vms[0].spec.image.name, "tiny") << "the alias is pinned";
  EXPECT_NE(create.vms[0].mac, create.vms[1].mac);
  EXPECT_EQ(create.demand.vms, 2);
  EXPECT_EQ(batch[0].operation.items[1].subject, create.vms[1].id.value);
  EXPECT_EQ(rig_.sealer.Open(batch[0].operation.sealed_secrets, ToString(batch[0].operation.id)),
            std::string(kSecret));
}

// Report 59.
TEST_F(VmServiceTest, AcceptsNoUnknownKeyThatWasFirstSentLongAgoOrIsSentFromTheFuture) {
  const Time now = rig_.ledger.Now();
  const auto sent = [&](const std::string& key, Milliseconds after) {
    CreateRequest request = Rig::RequestOf(key, Rig::IntentOf(key));
    request.first_sent = now + after;
    return rig_.Create(std::move(request));
  };
  const std::chrono::seconds most = model::limits::kFirstSentTolerance;
  EXPECT_TRUE(sent("old", -most));
  EXPECT_TRUE(sent("new", most));
  for (const Milliseconds after : {-most - Milliseconds(1), most + Milliseconds(1)}) {
    const Outcome refused = sent("late", after);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "first_sent_too_far");
  }
  // Nothing was taken by the refusal, and what is known is answered however late it comes.
  EXPECT_TRUE(rig_.Create("late", "late"));
  const Outcome known = sent("late", -std::chrono::hours(24));
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->is_replay);
}

TEST_F(VmServiceTest, KeepsNoSecretAndNoKeyInTheClear) {
  CreateRequest request = Rig::RequestOf("a-very-secret-key", Rig::IntentOf("web"));
  request.asked.request.body.as_object()["user_data"] = std::string(kSecret);
  request.user_data = kSecret;
  ASSERT_TRUE(rig_.Create(std::move(request)).has_value());
  const model::Operation operation = rig_.ledger.Batches().at(0).at(0).operation;
  for (const std::string& kept :
       {operation.canonical_request, operation.intent, operation.sealed_secrets,
        operation.key_prefix, rig_.ledger.Batches()[0][0].events.at(0).data}) {
    EXPECT_EQ(kept.find("hush"), std::string::npos);
    EXPECT_EQ(kept.find("a-very-secret-key"), std::string::npos);
  }
}

TEST_F(VmServiceTest, AnswersAKnownKeyWhateverHasBecomeOfTheImage) {
  const Outcome first = rig_.Create("key-1", "web");
  rig_.Restart({});
  const Outcome again = rig_.Create("key-1", "web");
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->is_replay);
  EXPECT_EQ(again->operation->id, first->operation->id);
  const Outcome other = rig_.Create("key-2", "web");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, "image_not_found");
}

// Report 79: what a name means is outside the fingerprint, and is pinned at acceptance.
TEST_F(VmServiceTest, ReplaysWithThePinnedImageAfterItsAliasMoved) {
  const auto stored = [](std::string id, std::string name) {
    return model::Image{.id = std::move(id), .name = std::move(name), .aliases = {"latest"}};
  };
  rig_.images->SetStored({stored("1", "debian-12")});
  model::CreateIntent intent = Rig::IntentOf("web");
  intent.image = "latest";
  const Outcome first = rig_.Create(Rig::RequestOf("key-1", intent));
  ASSERT_TRUE(first);
  rig_.images->SetStored({stored("2", "debian-13")});
  const Outcome again = rig_.Create(Rig::RequestOf("key-1", intent));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->is_replay);
  EXPECT_EQ(again->vms.at(0).id, first->vms.at(0).id);
  EXPECT_EQ(again->vms.at(0).spec.image.name, "debian-12");
  intent.cpus += 1;
  const Outcome other = rig_.Create(Rig::RequestOf("key-1", intent));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, "idempotency_key_reused");
  EXPECT_EQ(other.error().operation, first->operation->id);
  EXPECT_EQ(other.error().differing, std::vector<std::string>{"/cpus"});
}

TEST_F(VmServiceTest, AnswersACachedKeyByReadingAlone) {
  rig_.Create("key-1", "web");
  const int accepts = rig_.ledger.Calls("Accept");
  ASSERT_TRUE(rig_.Create("key-1", "web").has_value());
  EXPECT_EQ(rig_.ledger.Calls("Accept"), accepts);
  EXPECT_EQ(rig_.ledger.Calls("FindByKey"), 1);
}

// Report 61
TEST_F(VmServiceTest, NamesWhereARequestDiffersAndNoValues) {
  model::CreateIntent first = Rig::IntentOf("web");
  first.labels = {{"tier", "front"}};
  const Outcome created = rig_.Create(Rig::RequestOf("key-1", first));
  model::CreateIntent other = first;
  other.name = "secret-name";
  other.cpus = 4;
  other.labels = {{"tier", "back"}, {"a/b", "new"}};
  for (const bool is_cached : {true, false}) {
    if (!is_cached) rig_.Restart({Rig::ImageOf("tiny")});
    const Outcome refused = rig_.Create(Rig::RequestOf("key-1", other));
    ASSERT_FALSE(refused.has_value());
    const model::Problem& problem = refused.error();
    EXPECT_EQ(problem.code, "idempotency_key_reused");
    EXPECT_THAT(problem.differing,
                UnorderedElementsAre("/name", "/cpus", "/labels/tier", "/labels/a~1b"));
    EXPECT_EQ(problem.detail.find("secret-name"), std::string::npos);
    EXPECT_EQ(problem.operation, created->operation->id);
    EXPECT_EQ(problem.vm, created->vms.front().id);
    EXPECT_EQ(problem.first_seen, rig_.clock.Now());
  }
}

TEST_F(VmServiceTest, TakesTheKeyOnAnotherRouteForAMismatch) {
  rig_.Create("key-1", "web");
  ChangeRequest removal;
  removal.asked = Rig::AskedOf();
  removal.asked.key = model::IdempotencyKey{"key-1"};
  removal.asked.request.method = "DELETE";
  removal.asked.request.route = "/v1/vms/x";
  removal.asked.redacted = removal.asked.request;
  removal.vm = {MadeUpId(1, 1)};
  const Outcome refused =
      rig_.Answer([&](Done done) { rig_.service->Change(std::move(removal), std::move(done)); });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "idempotency_key_reused");
  EXPECT_THAT(refused.error().differing, testing::Contains("/method"));
  EXPECT_THAT(refused.error().differing, testing::Contains("/route"));
}

TEST_F(VmServiceTest, ComparesIntentsWhenTheKeyCameThroughAnotherFace) {
  rig_.Create("key-1", "web");
  for (const std::string name : {"web", "db"}) {
    CreateRequest request = Rig::RequestOf("key-1", Rig::IntentOf(name));
    request.asked.face = "queue";
    request.asked.request.route = "vmonce.creates";
    request.asked.redacted = request.asked.request;
    const Outcome answer = rig_.Create(std::move(request));
    EXPECT_EQ(answer.has_value(), name == "web");
    if (!answer) {
      EXPECT_EQ(answer.error().code, "idempotency_key_reused");
    }
  }
}

TEST_F(VmServiceTest, SaysOfATombstoneWhatItKnows) {
  const CreateRequest request = Rig::RequestOf("key-1", Rig::IntentOf("web"));
  model::Tombstone tombstone;
  tombstone.fingerprint = model::Fingerprint(request.asked.request);
  tombstone.vms = {{MadeUpId(1, 1)}};
  rig_.ledger.tombstones[model::KeyHash({"key-1"})] = tombstone;
  EXPECT_EQ(rig_.Create("key-1", "web").error().code, "idempotency_key_expired");
  EXPECT_EQ(rig_.Create("key-1", "db").error().code, "idempotency_key_reused");
  EXPECT_EQ(rig_.service->WouldCreate(request)->would, DryRun::Would::kExpired);
  const auto other = rig_.service->WouldCreate(Rig::RequestOf("key-1", Rig::IntentOf("db")));
  EXPECT_EQ(other->would, DryRun::Would::kMismatch);
}

// --- Failed records

TEST_F(VmServiceTest, RepeatsAFailureForGoodUntilTheUserDeletesTheVm) {
  const Outcome first = rig_.Create("key-1", "web");
  rig_.End(first->operation->id, OperationState::kFailed,
           model::Failure{"hypervisor_refused", "no such machine", false});
  const Outcome again = rig_.Create("key-1", "web");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, "hypervisor_refused");
  EXPECT_EQ(again.error().retry_same_key, false);
  const CreateRequest request = Rig::RequestOf("key-1", Rig::IntentOf("web"));
  EXPECT_EQ(rig_.service->WouldCreate(request)->would, DryRun::Would::kRefuse);

  rig_.Delete(first->vms.front());
  const Outcome deleted = rig_.Create("key-1", "web");
  ASSERT_TRUE(deleted.has_value());
  EXPECT_EQ(deleted->vms.front().state, model::VmState::kDeleted);
  EXPECT_EQ(rig_.ledger.Calls("Revive"), 0);
  EXPECT_EQ(rig_.service->WouldCreate(request)->would, DryRun::Would::kReplay);
}

TEST_F(VmServiceTest, StartsANewAttemptOfAPassingFailure) {
  const Outcome first = rig_.Create("key-1", "web");
  rig_.End(first->operation->id, OperationState::kFailed,
           model::Failure{"no_capacity", "full", true});
  const CreateRequest request = Rig::RequestOf("key-1", Rig::IntentOf("web"));
  EXPECT_EQ(rig_.service->WouldCreate(request)->would, DryRun::Would::kNewAttempt);
  const Outcome again = rig_.Create("key-1", "web");
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->is_replay);
  EXPECT_EQ(again->operation->attempt, 2);
  EXPECT_EQ(again->operation->state, OperationState::kAccepted);
}

// Another retry won, and its attempt has failed already: no success is told of it.
TEST_F(VmServiceTest, TellsTheFailureOfAnAttemptThatAnotherRetryStarted) {
  const Outcome first = rig_.Create("key-1", "web");
  const model::OperationId id = first->operation->id;
  rig_.End(id, OperationState::kFailed, model::Failure{"no_capacity", "full", true});
  rig_.ledger.before = [&](std::string_view call) -> std::optional<Error> {
    if (call != "Revive") return std::nullopt;
    model::Operation row = rig_.ledger.Row(id);
    row.attempt = 2;
    row.failure->detail = "full again";
    rig_.ledger.Put(row);
    return std::nullopt;
  };
  const Outcome again = rig_.Create("key-1", "web");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().detail, "full again");
  EXPECT_EQ(again.error().retry_same_key, true);
}

// --- What does not answer

TEST_F(VmServiceTest, SaysThatTheLedgerDoesNotAnswerAndNeverTakesAKeyForNew) {
  rig_.Create("key-1", "web");
  rig_.ledger.before = [](std::string_view) { return Error{ErrorCode::kUnavailable, "down"}; };
  for (const std::string key : {"key-1", "key-2"}) {
    const Outcome answer = rig_.Create(key, "web");
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, "ledger_unavailable");
    EXPECT_TRUE(answer.error().retry_after.has_value());
  }
  rig_.ledger.before = nullptr;
  rig_.capacity = Fail(ErrorCode::kUnavailable, "down");
  EXPECT_EQ(rig_.Create("key-3", "web").error().code, "ledger_unavailable");
}

TEST(VmService, SaysWhenTooManyWait) {
  Rig rig({.batch = 1, .queue = 0});
  rig.Restart({Rig::ImageOf("tiny")});
  EXPECT_EQ(rig.Create("key-1", "web").error().code, "overloaded");
  EXPECT_EQ(rig.Create(Rig::RequestOf("key-1", model::CreateIntent{.image = "none"})).error().code,
            "overloaded");
  EXPECT_EQ(rig.Cancel(model::OperationId{}).error().code, "overloaded");
}

// --- Waiting

struct WaitingCreate {
  explicit WaitingCreate(Rig& rig, std::chrono::seconds wait = std::chrono::seconds(30)) {
    CreateRequest request = Rig::RequestOf("key-1", Rig::IntentOf("web"));
    request.asked.wait = wait;
    rig.service->Create(std::move(request), [this](Outcome o) { outcome = std::move(o); });
    rig.intake.RunOnce();
    id = rig.ledger.Batches().at(0).at(0).operation.id;
  }
  std::optional<Outcome> outcome;
  model::OperationId id;
};

TEST_F(VmServiceTest, WaitsForTheEndAndAnswersWithTheLiveMachine) {
  WaitingCreate waiting(rig_);
  EXPECT_FALSE(waiting.outcome.has_value());
  rig_.End(waiting.id, OperationState::kSucceeded);
  rig_.waiters.Ended(waiting.id);
  ASSERT_TRUE(waiting.outcome.has_value());
  ASSERT_TRUE(waiting.outcome->has_value());
  EXPECT_FALSE((*waiting.outcome)->is_replay);
  EXPECT_EQ((*waiting.outcome)->operation->state, OperationState::kSucceeded);
  EXPECT_EQ((*waiting.outcome)->vms.size(), 1u);
}

TEST_F(VmServiceTest, AnswersAWaitThatIsOverWithWhatIsKnown) {
  WaitingCreate waiting(rig_);
  rig_.waiters.Stop();
  ASSERT_TRUE(waiting.outcome.has_value());
  EXPECT_EQ((*waiting.outcome)->operation->state, OperationState::kAccepted);
}

TEST_F(VmServiceTest, TellsAFailureToWhoWaits) {
  WaitingCreate waiting(rig_);
  rig_.End(waiting.id, OperationState::kFailed, model::Failure{"no_capacity", "full", true});
  rig_.waiters.Ended(waiting.id);
  ASSERT_TRUE(waiting.outcome.has_value());
  ASSERT_FALSE(waiting.outcome->has_value());
  EXPECT_EQ(waiting.outcome->error().code, "no_capacity");
}

// It ended after it was read and before the wait began.
TEST_F(VmServiceTest, MissesNoEndThatCameBeforeTheWait) {
  const Outcome first = rig_.Create("key-1", "web");
  const model::OperationId id = first->operation->id;
  rig_.ledger.before = [&](std::string_view call) -> std::optional<Error> {
    if (call == "GetOperation") rig_.End(id, OperationState::kSucceeded);
    return std::nullopt;
  };
  CreateRequest request = Rig::RequestOf("key-1", Rig::IntentOf("web"));
  request.asked.wait = std::chrono::seconds(30);
  const Outcome again = rig_.Create(std::move(request));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->operation->state, OperationState::kSucceeded);
}

TEST_F(VmServiceTest, TellsHowManyDuplicatesWereServed) {
  const Outcome first = rig_.Create("key-1", "web");
  rig_.Create("key-1", "web");
  rig_.Create("key-1", "web");
  rig_.service->FlushDuplicates();
  rig_.service->FlushDuplicates();
  ASSERT_EQ(rig_.ledger.appended.size(), 1u);
  EXPECT_EQ(rig_.ledger.appended[0].operation, first->operation->id);
  EXPECT_EQ(rig_.ledger.appended[0].detail, "2 duplicates");
  EXPECT_EQ(rig_.service->OutcomeCounts().at("replayed"), 2);
}

// --- Cancel

TEST_F(VmServiceTest, CancelMarksEveryVmOfTheCreate) {
  const Outcome created = rig_.Create("key-1", "web", 3);
  const Outcome answer = rig_.Cancel(created->operation->id);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->operation->id, created->operation->id);
  ASSERT_EQ(answer->vms.size(), 3u);
  for (const model::Vm& vm : answer->vms) EXPECT_EQ(vm.state, model::VmState::kDeleting);
}

// Whoever is told of a cancel can rely on it.
TEST_F(VmServiceTest, CancelTellsWhenAMarkCouldNotBeMade) {
  const Outcome created = rig_.Create("key-1", "web", 3);
  int deletes = 0;
  rig_.ledger.on_accept =
      [&](const ports::Submission& submission) -> std::optional<ports::AcceptOutcome> {
    if (!std::holds_alternative<ports::DeleteVm>(submission.change)) return std::nullopt;
    if (++deletes != 2) return std::nullopt;
    return ports::Declined{ports::DeclineReason::kBacklogFull, {}, {}, "7 are unfinished"};
  };
  const Outcome refused = rig_.Cancel(created->operation->id);
  EXPECT_EQ(deletes, 3) << "the others are marked";
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "backlog_full");
  EXPECT_TRUE(rig_.Cancel(created->operation->id).has_value());
}

TEST_F(VmServiceTest, CancelWaitsForTheEndWhenAskedTo) {
  const Outcome created = rig_.Create("key-1", "web");
  const model::OperationId id = created->operation->id;
  std::optional<Outcome> answer;
  rig_.service->Cancel(Rig::AskedOf(std::chrono::seconds(30)), id,
                       [&](Outcome outcome) { answer = std::move(outcome); });
  while (rig_.intake.RunOnce()) {
  }
  EXPECT_FALSE(answer.has_value());
  rig_.End(id, OperationState::kCancelled);
  rig_.waiters.Ended(id);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->operation->state, OperationState::kCancelled);
}

TEST_F(VmServiceTest, CancelRefusesWhatItCannotStop) {
  const Outcome created = rig_.Create("key-1", "web");
  const model::OperationId id = created->operation->id;
  EXPECT_EQ(rig_.Cancel({MadeUpId(9, 9)}).error().code, "operation_not_found");

  Asked stranger = Rig::AskedOf();
  stranger.caller.project = {"another"};
  const Outcome hidden = rig_.Answer(
      [&](Done done) { rig_.service->Cancel(std::move(stranger), id, std::move(done)); });
  EXPECT_EQ(hidden.error().code, "operation_not_found") << "not even that it exists";

  rig_.End(id, OperationState::kSucceeded);
  EXPECT_EQ(rig_.Cancel(id).error().code, "operation_finished");

  model::Operation removal = rig_.ledger.Row(id);
  removal.kind = model::OperationKind::kDelete;
  rig_.ledger.Put(removal);
  EXPECT_EQ(rig_.Cancel(id).error().code, "wrong_state");
  EXPECT_EQ(rig_.ledger.Calls("Accept"), 1) << "the create's";
}

TEST_F(VmServiceTest, CancelTwiceIsOnce) {
  const Outcome created = rig_.Create("key-1", "web");
  rig_.End(created->operation->id, OperationState::kCancelled);
  EXPECT_TRUE(rig_.Cancel(created->operation->id).has_value());
}

// --- Dry runs

TEST_F(VmServiceTest, DryRunSeesTheHolderOfANameBehindFailedVmsOfTheSameName) {
  for (std::uint8_t i = 1; i <= 150; ++i) {
    model::Vm failed;
    failed.id = {MadeUpId(1, i)};
    failed.project = kProject;
    failed.name = "web";
    failed.holds_reservation = i == 150;
    rig_.ledger.Put(failed);
  }
  const auto run = rig_.service->WouldCreate(Rig::RequestOf("key-1", Rig::IntentOf("web")));
  ASSERT_TRUE(run.has_value());
  ASSERT_EQ(run->would, DryRun::Would::kRefuse);
  EXPECT_EQ(run->problem->code, "name_taken");
  EXPECT_EQ(run->problem->vm, model::VmId{MadeUpId(1, 150)});
}

TEST_F(VmServiceTest, DryRunSaysWhatACreateWouldDoAndDoesNothing) {
  EXPECT_EQ(rig_.service->WouldCreate(Rig::RequestOf("key-1", Rig::IntentOf("web")))->would,
            DryRun::Would::kCreate);
  model::CreateIntent unknown = Rig::IntentOf("web");
  unknown.image = "none";
  const auto refused = rig_.service->WouldCreate(Rig::RequestOf("key-1", unknown));
  EXPECT_EQ(refused->problem->code, "image_not_found");
  rig_.ledger.usage = {.vms = 100, .cpus = 0, .memory_mib = 0, .disk_gib = 0};
  const auto full = rig_.service->WouldCreate(Rig::RequestOf("key-1", Rig::IntentOf("web")));
  EXPECT_EQ(full->problem->code, "quota_exceeded");
  EXPECT_EQ(rig_.ledger.Calls("Accept"), 0);
  rig_.Create("key-1", "web");
  EXPECT_EQ(rig_.service->WouldCreate(Rig::RequestOf("key-1", Rig::IntentOf("web")))->would,
            DryRun::Would::kReplay);
  EXPECT_EQ(rig_.service->WouldCreate(Rig::RequestOf("key-1", Rig::IntentOf("db")))->would,
            DryRun::Would::kMismatch);
}

}  // namespace
}  // namespace vmonce::service
