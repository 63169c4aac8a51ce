#include "sim/client.h"

#include <boost/json.hpp>

#include "sim/replica.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

using Kind = service::ChangeRequest::Kind;

// What a retry may change: section 13's `retryable`, and what the network says.
bool IsWorthRetrying(const std::optional<service::Outcome>& outcome) {
  if (!outcome) return true;
  if (*outcome) return false;
  const model::Problem& problem = outcome->error();
  return model::KindOf(problem.code).retryable;
}

bool IsUnfinished(const std::optional<service::Outcome>& outcome) {
  return outcome && *outcome && (*outcome)->operation &&
         !model::IsFinished((*outcome)->operation->state);
}

}  // namespace

Client::Client(Stage& stage, std::vector<std::unique_ptr<Replica>>& replicas, int number)
    : stage_(stage),
      replicas_(replicas),
      name_(fmt::format("client {}", number)),
      // Two of them share one.
      project_{number % 2 == 0 ? "even" : "odd"} {}

void Client::Run() {
  for (int i = 0; i < stage_.shape.requests; ++i) {
    Pause(0, 8'000);
    MakeOne(i);
  }
  is_done_ = true;
}

void Client::MakeOne(int number) {
  Chance& chance = stage_.work_chance;
  Create create;
  const std::string name = fmt::format("{}-{}", name_.substr(7), number);
  create.key = &stage_.oracle.Key(project_, "key-" + name);
  create.intent.name = "vm-" + name;
  create.intent.image = "tiny";
  create.intent.count = chance.OneIn(4) ? static_cast<int>(chance.Between(2, 3)) : 1;
  if (chance.OneIn(6)) create.intent.desired = model::Desired::kStopped;
  create.key->count = create.intent.count;
  made_.push_back(create);

  if (stage_.Happens(FaultKind::kFlood)) Flood(create);
  std::optional<service::Outcome> told = SendCreate(create, 8);
  if (create.key->operation && stage_.Happens(FaultKind::kOtherBody)) SendOtherBody(create);
  if (create.key->operation && stage_.Happens(FaultKind::kPatchCrosses)) {
    CrossWithPatch(create.key->vms[chance.Draw() % create.key->vms.size()]);
  }
  if (create.key->operation && stage_.Happens(FaultKind::kDeleteCrosses)) {
    Pause(0, 3'000);
    // An older ledger, restored meanwhile, may have forgotten it.
    const bool is_known = create.key->operation.has_value();
    if (is_known && chance.OneIn(3)) {
      Cancel(*create.key->operation);
    } else if (is_known) {
      CrossWithDelete(create.key->vms[chance.Draw() % create.key->vms.size()]);
    }
  }
  // Some are watched until they are ready, and used then.
  if (!chance.OneIn(2)) return;
  for (int i = 0; i < 6 && (!told || IsUnfinished(told)); ++i) {
    Pause(1'000, 10'000);
    told = SendCreate(create, 3);
  }
  if (!create.key->operation) return;
  const model::VmId vm = create.key->vms.front();
  if (chance.OneIn(3)) Change(chance.OneIn(2) ? Kind::kStop : Kind::kReboot, vm);
  if (chance.OneIn(4)) Change(Kind::kStart, vm);
  if (chance.OneIn(3)) Change(Kind::kDelete, vm);
}

std::optional<service::Outcome> Client::SendCreate(const Create& create, int tries) {
  std::optional<service::Outcome> told;
  for (int i = 0; i < tries; ++i) {
    told = SendOnce(create);
    if (!IsWorthRetrying(told)) return told;
    Pause(200, 4'000);
  }
  return told;
}

std::optional<service::Outcome> Client::SendOnce(const Create& create) {
  auto told = Ask(
      [request = RequestOf(create)](service::VmService& service, service::Done done) {
        service.Create(request, std::move(done));
      },
      Milliseconds(stage_.work_chance.Between(500, 20'000)));
  if (!told) return told;
  stage_.Tell(name_, "{} -> {}", create.key->key,
              !*told               ? (*told).error().code
              : (*told)->is_replay ? "existing"
                                   : "created");
  stage_.oracle.CreateAnswered(*create.key, create.body, *told);
  if (stage_.Happens(FaultKind::kAnswerLost)) {
    // What the oracle heard the client did not, and it asks again.
    return std::nullopt;
  }
  return told;
}

void Client::Flood(const Create& create) {
  for (int i = 0; i < 6; ++i) {
    Replica& replica = *replicas_[stage_.work_chance.Draw() % replicas_.size()];
    // Nobody waits for these; what they make is found by the one that follows.
    (void)replica.Post([request = RequestOf(create)](service::VmService& service) {
      service.Create(request, [](const service::Outcome&) {});
    });
  }
}

void Client::SendOtherBody(Create create) {
  create.body = 1;
  create.intent.memory_mib = 768;
  create.key->bodies = 2;
  SendOnce(create);
}

void Client::CrossWithDelete(const model::VmId& vm) { Change(Kind::kDelete, vm); }

void Client::CrossWithPatch(const model::VmId& vm) {
  const std::string mark = fmt::format("{}", stage_.work_chance.Draw() % 1'000);
  service::ChangeRequest request;
  request.kind = Kind::kUpdate;
  request.vm = vm;
  request.labels = std::map<std::string, std::string>{{Oracle::kMarkLabel, mark}};
  if (stage_.work_chance.OneIn(2)) request.restart = model::RestartPolicy::kHostFailure;
  request.asked.caller.project = project_;
  request.asked.key = model::IdempotencyKey{"patch-" + ToString(vm)};
  request.asked.request.method = "PATCH";
  request.asked.request.route = "/v1/vms/" + ToString(vm);
  request.asked.request.body = boost::json::value{{"labels", {{Oracle::kMarkLabel, mark}}}};
  request.asked.redacted = request.asked.request;
  request.asked.face = "rest";
  // From the first try on it may be so.
  stage_.oracle.Patched(vm, std::nullopt);
  for (int i = 0; i < 6; ++i) {
    const auto told =
        Ask([request](service::VmService& service,
                      service::Done done) { service.Change(request, std::move(done)); },
            Milliseconds(10'000));
    if (told) {
      stage_.Tell(name_, "change of {}'s labels -> {}", ToString(vm).substr(24),
                  *told ? "ok" : (*told).error().code);
      if (*told) return stage_.oracle.Patched(vm, mark);
    }
    if (!IsWorthRetrying(told)) return;
    Pause(100, 2'000);
  }
}

void Client::Change(Kind kind, const model::VmId& vm) {
  for (int i = 0; i < 4; ++i) {
    service::ChangeRequest request;
    request.asked.caller.project = project_;
    request.asked.request.method = "POST";
    request.asked.request.route =
        fmt::format("/v1/vms/{}/{}", ToString(vm), static_cast<int>(kind));
    request.asked.redacted = request.asked.request;
    request.asked.face = "rest";
    request.kind = kind;
    request.vm = vm;
    request.force = kind == Kind::kStop && stage_.work_chance.OneIn(2);
    const auto told =
        Ask([request](service::VmService& service,
                      service::Done done) { service.Change(request, std::move(done)); },
            Milliseconds(10'000));
    if (told) {
      stage_.Tell(name_, "change {} of {} -> {}", static_cast<int>(kind), ToString(vm).substr(24),
                  *told ? "ok" : (*told).error().code);
    }
    if (told && kind == Kind::kDelete) stage_.oracle.DeleteAnswered(vm, *told);
    if (!IsWorthRetrying(told)) return;
    Pause(200, 4'000);
  }
}

void Client::Cancel(const model::OperationId& operation) {
  service::Asked asked;
  asked.caller.project = project_;
  asked.request.method = "POST";
  asked.request.route = "/v1/operations/" + ToString(operation) + "/cancel";
  asked.redacted = asked.request;
  asked.face = "rest";
  const auto told = Ask(
      [asked, operation](service::VmService& service, service::Done done) {
        service.Cancel(asked, operation, std::move(done));
      },
      Milliseconds(10'000));
  if (told) stage_.Tell(name_, "cancel -> {}", *told ? "ok" : (*told).error().code);
}

service::CreateRequest Client::RequestOf(const Create& create) const {
  service::CreateRequest request;
  request.asked.caller.project = project_;
  request.asked.key = model::IdempotencyKey{create.key->key};
  request.asked.request.method = "POST";
  request.asked.request.route = "/v1/vms";
  request.asked.request.body = boost::json::parse(model::Serialise(create.intent));
  request.asked.redacted = request.asked.request;
  request.asked.face = "rest";
  request.intent = create.intent;
  request.user_data = Oracle::UserDataFor(create.intent.name);
  return request;
}

std::optional<service::Outcome> Client::Ask(
    std::function<void(service::VmService&, service::Done)> call, Milliseconds patience) {
  struct Box {
    FiberId waiting = 0;
    std::optional<service::Outcome> outcome;
  };
  // Shared with a process that may be killed, or answer when nobody waits any more.
  auto box = std::make_shared<Box>();
  box->waiting = stage_.scheduler.Current();
  Scheduler& scheduler = stage_.scheduler;
  Replica& replica = *replicas_[stage_.work_chance.Draw() % replicas_.size()];
  const bool is_sent = replica.Post([box, &scheduler, call](service::VmService& service) {
    call(service, [box, &scheduler](service::Outcome outcome) {
      if (box->outcome) return;
      box->outcome = std::move(outcome);
      scheduler.Wake(box->waiting);
    });
  });
  if (!is_sent) return std::nullopt;
  if (stage_.Happens(FaultKind::kClientGone)) return std::nullopt;
  const Instant end = scheduler.now() + patience;
  while (!box->outcome && scheduler.now() < end) scheduler.Park(end);
  return box->outcome;
}

void Client::Pause(std::int64_t least_ms, std::int64_t most_ms) {
  const Instant end =
      stage_.scheduler.now() + Milliseconds(stage_.work_chance.Between(least_ms, most_ms));
  while (stage_.scheduler.now() < end) stage_.scheduler.Park(end);
}

bool Client::AskAllAgain() {
  // A replica that has just started says "later" until it has tried its hosts.
  constexpr int kTries = 8;
  constexpr int kRounds = 6;
  const auto is_answered = [](const std::optional<service::Outcome>& told) {
    // That there is no room is an answer, too, and stays one.
    return told && (!IsWorthRetrying(told) || told->error().code == "no_capacity");
  };
  return std::ranges::all_of(made_, [&](const Create& create) {
    for (int round = 0; round < kRounds; ++round) {
      if (is_answered(SendCreate(create, kTries))) return true;
    }
    return false;
  });
}

}  // namespace vmonce::sim
