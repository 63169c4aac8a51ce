#include "service/vm_service.h"

#include "base/check.h"
#include "base/json_writer.h"
#include "model/label.h"
#include "model/limits.h"
#include "model/request_limits.h"
#include "service/pending.h"
#include "service/queries.h"
#include "workflows/power_vm.h"

namespace vmonce::service {
namespace {

using model::Operation;
using model::OperationKind;
using model::Vm;

OperationKind KindOfChange(ChangeRequest::Kind kind) {
  switch (kind) {
    case ChangeRequest::Kind::kDelete: return OperationKind::kDelete;
    case ChangeRequest::Kind::kStart: return OperationKind::kStart;
    case ChangeRequest::Kind::kStop: return OperationKind::kStop;
    case ChangeRequest::Kind::kReboot: return OperationKind::kReboot;
    case ChangeRequest::Kind::kUpdate: return OperationKind::kUpdate;
  }
  return OperationKind::kUpdate;
}

model::VmSpec SpecOf(const model::CreateIntent& intent, const model::Image& image) {
  model::VmSpec spec;
  spec.image = image;
  spec.cpus = intent.cpus;
  spec.memory_mib = intent.memory_mib;
  spec.disk_gib = intent.disk_gib;
  spec.ssh_keys = intent.ssh_keys;
  spec.network = intent.network;
  spec.forwards = intent.forwards;
  return spec;
}

}  // namespace

VmService::VmService(const ServiceParts& parts, ServiceSettings settings)
    : parts_(parts),
      settings_(std::move(settings)),
      known_keys_(settings_.known_keys),
      monitor_(parts.threads.NewMonitor()) {}

void VmService::Create(CreateRequest request, Done done) {
  CHECK_MSG(request.asked.key.has_value(), "a face let a create without a key through");
  PendingPointer pending = NewPending(std::move(request.asked), std::move(done));
  const model::ProjectId project = pending->asked.caller.project;
  const Digest hash = *pending->key_hash;

  const bool is_known = known_keys_.Has(project, hash);
  // Resolved once: what the name means from now on is this request's no more.
  std::optional<model::Image> image = parts_.images.Resolve(request.intent.image);
  std::optional<model::Problem> refusal = WhyNot(request, image);
  if (!is_known && !refusal) {
    Claim(request, *image, pending);
    return;
  }
  // A known key is answered by its record, whatever has become of the image since.
  auto look_up = [this, pending, request = std::move(request), image = std::move(image),
                  refusal = std::move(refusal)]() mutable {
    if (parts_.watch != nullptr) pending->read_since = parts_.watch->Now();
    auto found = parts_.ledger.FindByKey(pending->asked.caller.project, *pending->key_hash);
    if (!found) {
      Reply(pending, std::unexpected(LedgerProblem(found.error())), "ledger_unavailable");
    } else if (found->has_value()) {
      const auto* known = std::get_if<ports::Known>(&**found);
      const bool is_of_other_face = known && known->operation.face != pending->asked.face;
      if (is_of_other_face) pending->intent = model::Serialise(request.intent);
      AnswerFound(pending, std::move(**found));
    } else if (refusal) {
      Reply(pending, std::unexpected(std::move(*refusal)), "refused");
    } else {
      known_keys_.Forget(pending->asked.caller.project, *pending->key_hash);
      Claim(request, *image, pending);
    }
  };
  if (!parts_.intake.Post(std::move(look_up))) {
    Reply(pending, std::unexpected(OverloadedProblem()), "overloaded");
  }
}

std::optional<model::Problem> VmService::WhyNot(const CreateRequest& request,
                                                const std::optional<model::Image>& image) const {
  std::optional<model::Problem> closed;
  if (parts_.creates_closed) closed = parts_.creates_closed();
  if (closed) return closed;
  if (request.first_sent) {
    const Time now = parts_.ledger.Now();
    const auto apart = std::chrono::abs(now - *request.first_sent);
    if (apart > model::limits::kFirstSentTolerance)
      return FirstSentTooFar(*request.first_sent, now);
  }
  const model::CreateIntent& intent = request.intent;
  if (!image) return ImageNotFound(intent.image);
  if (std::optional<std::string> changed = parts_.images.ProblemOf(*image)) {
    model::Problem problem;
    problem.code = "image_changed";
    problem.detail = *std::move(changed) + " Nothing happened.";
    return problem;
  }
  if (!parts_.not_offered) return std::nullopt;
  const auto why = parts_.not_offered(SpecOf(intent, *image));
  if (!why) return std::nullopt;
  return NotOffered(*why);
}

void VmService::Claim(const CreateRequest& request, const model::Image& image,
                      const PendingPointer& pending) {
  pending->intent = model::Serialise(request.intent);
  std::expected<ports::Submission, model::Problem> submission =
      BuildCreate(request, image, *pending);
  if (!submission) {
    Reply(pending, std::unexpected(std::move(submission.error())), "ledger_unavailable");
    return;
  }
  Submit(std::move(*submission), pending);
}

void VmService::Change(ChangeRequest request, Done done) {
  PendingPointer pending = NewPending(std::move(request.asked), std::move(done));
  Submit(BuildChange(request, *pending), pending);
}

// Deleting what is not there yet: the creates' worker sees the marks and ends as cancelled.
void VmService::Cancel(Asked asked, model::OperationId operation, Done done) {
  PendingPointer pending = NewPending(std::move(asked), std::move(done));
  auto cancel = [this, pending, operation] { CancelNow(pending, operation); };
  if (!parts_.intake.Post(std::move(cancel))) {
    Reply(pending, std::unexpected(OverloadedProblem()), "overloaded");
  }
}

void VmService::CancelNow(const PendingPointer& pending, const model::OperationId& id) {
  Result<std::optional<Operation>> found = parts_.ledger.GetOperation(id);
  if (!found) {
    Reply(pending, std::unexpected(LedgerProblem(found.error())), "ledger_unavailable");
    return;
  }
  model::Problem problem;
  if (!found->has_value() || (*found)->project != pending->asked.caller.project) {
    problem.code = "operation_not_found";
    problem.detail = "There is no operation " + ToString(id) + " in this project.";
  } else if ((*found)->kind != OperationKind::kCreate) {
    problem.code = "wrong_state";
    problem.detail = "Only a create can be cancelled; a " + std::string(ToString((*found)->kind)) +
                     " goes on to its end.";
  } else if (model::IsFinished((*found)->state) &&
             (*found)->state != model::OperationState::kCancelled) {
    problem.code = "operation_finished";
    problem.detail = "The operation has ended already (" + std::string(ToString((*found)->state)) +
                     "). Delete its VMs instead.";
  }
  if (!problem.code.empty()) {
    problem.operation = id;
    Reply(pending, std::unexpected(std::move(problem)), "refused");
    return;
  }
  MarkAll(pending, **found);
}

// Answers when every delete has been answered: with the first problem, or with the create as it is
// then.
void VmService::MarkAll(const PendingPointer& pending, const Operation& operation) {
  struct Progress {
    Progress(std::unique_ptr<Monitor> m, std::size_t count) : monitor(std::move(m)), left(count) {}
    std::unique_ptr<Monitor> monitor;
    std::size_t left GUARDED_BY(*monitor);
    std::optional<model::Problem> problem GUARDED_BY(*monitor);
  };
  // Shared: by the answers of all deletes.
  const auto progress =
      std::make_shared<Progress>(parts_.threads.NewMonitor(), operation.items.size() + 1);
  auto step = [this, pending, progress, id = operation.id](const model::Problem* problem) {
    std::optional<model::Problem> first;
    {
      MonitorLock lock(*progress->monitor);
      if (problem != nullptr && !progress->problem) progress->problem = *problem;
      if (--progress->left > 0) return;
      first = std::move(progress->problem);
    }
    Outcome answer =
        first ? std::unexpected(std::move(*first)) : ReadAnswer(id, /*is_replay=*/false);
    if (answer) {
      AnswerOrWait(pending, std::move(*answer), "cancelled");
    } else {
      Reply(pending, std::move(answer), "failed");
    }
  };
  for (const model::Item& item : operation.items) {
    ChangeRequest request;
    request.asked.caller = pending->asked.caller;
    request.asked.face = pending->asked.face;
    request.asked.request.method = "DELETE";
    request.asked.request.route = "/v1/vms/" + ToString(item.subject);
    request.asked.redacted = request.asked.request;
    request.kind = ChangeRequest::Kind::kDelete;
    request.vm = {item.subject};
    Change(std::move(request),
           [step](const Outcome& marked) { step(marked ? nullptr : &marked.error()); });
  }
  step(nullptr);
}

VmService::PendingPointer VmService::NewPending(Asked asked, Done done) const {
  auto pending = std::make_shared<Pending>();
  pending->asked = std::move(asked);
  const Asked& now = pending->asked;
  if (now.key) pending->key_hash = model::KeyHash(*now.key);
  pending->fingerprint = model::Fingerprint(now.request);
  // The clear body has served its purpose.
  pending->asked.request.body = nullptr;
  const std::chrono::seconds wait = std::min(now.wait, settings_.wait_cap);
  if (wait.count() > 0) pending->answer_by = parts_.clock.Monotonic() + wait;
  pending->done = std::move(done);
  return pending;
}

std::expected<ports::Submission, model::Problem> VmService::BuildCreate(
    const CreateRequest& request, const model::Image& image, const Pending& pending) {
  const model::CreateIntent& intent = request.intent;
  const Result<model::Resources> capacity = parts_.capacity();
  if (!capacity) return std::unexpected(LedgerProblem(capacity.error()));

  ports::Submission submission;
  submission.operation = NewOperation(pending, OperationKind::kCreate);
  Operation& operation = submission.operation;
  operation.intent = pending.intent;
  if (!request.user_data.empty()) {
    operation.sealed_secrets = parts_.sealer.Seal(request.user_data, ToString(operation.id));
  }
  ports::CreateVms create;
  create.quota = settings_.quotas.Of(operation.project).amounts;
  create.capacity = *capacity;
  for (int index = 0; index < intent.count; ++index) {
    Vm vm;
    vm.id = {NewUuidV7(parts_.clock, parts_.random)};
    vm.project = operation.project;
    vm.name = intent.name.empty() ? model::GeneratedName(vm.id)
                                  : model::ItemName(intent.name, index, intent.count);
    vm.operation = operation.id;
    vm.index = index;
    vm.key_prefix = operation.key_prefix;
    vm.spec = SpecOf(intent, image);
    vm.spec.hostname =
        intent.hostname.empty() ? vm.name : model::ItemName(intent.hostname, index, intent.count);
    vm.mac = model::MacAddress(vm.id);
    vm.labels = intent.labels;
    vm.desired = intent.desired;
    vm.restart = intent.restart;
    vm.holder = operation.id;
    create.demand = create.demand + Demand(vm.spec);
    model::Item item;
    item.index = index;
    item.subject = vm.id.value;
    operation.items.push_back(std::move(item));
    create.vms.push_back(std::move(vm));
  }
  submission.change = std::move(create);
  return submission;
}

ports::Submission VmService::BuildChange(const ChangeRequest& request, const Pending& pending) {
  ports::Submission submission;
  submission.operation = NewOperation(pending, KindOfChange(request.kind));
  Operation& operation = submission.operation;
  operation.intent = "{}";
  model::Item item;
  item.subject = request.vm.value;
  switch (request.kind) {
    case ChangeRequest::Kind::kDelete:
      submission.change = ports::DeleteVm{request.vm, request.if_version};
      break;
    case ChangeRequest::Kind::kStart:
    case ChangeRequest::Kind::kReboot:
      submission.change = ports::PowerVm{request.vm, model::Desired::kRunning, request.if_version};
      break;
    case ChangeRequest::Kind::kStop:
      operation.intent = workflows::Serialise(workflows::StopIntent{request.force});
      submission.change = ports::PowerVm{request.vm, model::Desired::kStopped, request.if_version};
      break;
    case ChangeRequest::Kind::kUpdate:
      // Whether there is anything to start or stop is decided with the claim.
      if (request.desired) {
        operation.kind = *request.desired == model::Desired::kRunning ? OperationKind::kStart
                                                                      : OperationKind::kStop;
      }
      submission.change = ports::UpdateVm{request.vm,      request.name,    request.labels,
                                          request.desired, request.restart, request.if_version};
      break;
  }
  operation.items.push_back(std::move(item));
  return submission;
}

Operation VmService::NewOperation(const Pending& pending, OperationKind kind) {
  Operation operation;
  operation.id = {NewUuidV7(parts_.clock, parts_.random)};
  operation.project = pending.asked.caller.project;
  operation.kind = kind;
  operation.key_hash = pending.key_hash;
  if (pending.asked.key) operation.key_prefix = model::RedactedPrefix(*pending.asked.key);
  operation.fingerprint = pending.fingerprint;
  operation.fingerprint_version = model::kFingerprintVersion;
  operation.canonical_request = model::CanonicalRequest(pending.asked.redacted);
  operation.face = pending.asked.face;
  return operation;
}

void VmService::Submit(ports::Submission submission, const PendingPointer& pending) {
  if (std::optional<model::Problem> problem = parts_.closed ? parts_.closed() : std::nullopt) {
    Reply(pending, std::unexpected(std::move(*problem)), "unavailable");
    return;
  }
  submission.max_backlog = settings_.max_backlog;
  submission.max_keys = settings_.quotas.Of(submission.operation.project).keys;
  submission.token = pending->asked.caller.token;
  model::Event accepted;
  accepted.id = NewUuidV7(parts_.clock, parts_.random);
  accepted.type = "operation.accepted";
  accepted.project = submission.operation.project;
  accepted.subject = ToString(submission.operation.id);
  JsonWriter data(accepted.data);
  data.BeginObject();
  data.Member("operation", accepted.subject);
  data.Member("kind", ToString(submission.operation.kind));
  data.EndObject();
  submission.events.push_back(std::move(accepted));
  const bool is_queued = parts_.intake.Submit(
      std::move(submission),
      [this, pending](ports::AcceptOutcome outcome) { Accepted(pending, std::move(outcome)); });
  if (!is_queued) Reply(pending, std::unexpected(OverloadedProblem()), "overloaded");
}

std::expected<DryRun, model::Problem> VmService::WouldCreate(const CreateRequest& request) {
  const PendingPointer pending = NewPending(request.asked, nullptr);
  pending->intent = model::Serialise(request.intent);
  // Without a key it says what a new one would do.
  if (pending->key_hash) {
    auto found = parts_.ledger.FindByKey(request.asked.caller.project, *pending->key_hash);
    if (!found) return std::unexpected(LedgerProblem(found.error()));
    if (found->has_value()) return WouldReplay(*pending, **found);
  }

  DryRun run;
  const auto refuse = [&run](model::Problem problem) {
    run.would = DryRun::Would::kRefuse;
    run.problem = std::move(problem);
    return run;
  };
  const std::optional<model::Image> image = parts_.images.Resolve(request.intent.image);
  if (std::optional<model::Problem> refusal = WhyNot(request, image)) {
    return refuse(std::move(*refusal));
  }
  std::expected<ports::Submission, model::Problem> submission =
      BuildCreate(request, *image, *pending);
  if (!submission) return std::unexpected(std::move(submission.error()));
  const auto& create = std::get<ports::CreateVms>(submission->change);
  for (const Vm& vm : create.vms) {
    const Result<std::optional<Vm>> holder = HolderOf(vm.project, vm.name);
    if (!holder) return std::unexpected(LedgerProblem(holder.error()));
    if (!holder->has_value()) continue;
    return refuse(ProblemOf(
        ports::Declined{ports::DeclineReason::kNameTaken, (*holder)->id, std::nullopt, vm.name}));
  }
  const Result<model::Resources> usage = parts_.ledger.Usage(request.asked.caller.project);
  if (!usage) return std::unexpected(LedgerProblem(usage.error()));
  if (!(*usage + create.demand).FitsIn(create.quota)) {
    return refuse(ProblemOf(ports::Declined{ports::DeclineReason::kQuotaExceeded, std::nullopt,
                                            std::nullopt, "asked with what is used already"}));
  }
  return run;
}

// Any number of failed VMs may have had the name beside the one that holds it.
Result<std::optional<Vm>> VmService::HolderOf(const model::ProjectId& project,
                                              const std::string& name) {
  ports::VmFilter filter;
  filter.name = name;
  ports::Page page{.most = model::limits::kPageItems, .after = {}};
  do {
    Result<ports::PageOf<Vm>> others = parts_.ledger.ListVms(project, filter, page);
    if (!others) return std::unexpected(others.error());
    const auto holder = std::ranges::find(others->rows, true, &Vm::holds_reservation);
    if (holder != others->rows.end()) return std::move(*holder);
    page.after = std::move(others->next);
  } while (!page.after.empty());
  return std::nullopt;
}

}  // namespace vmonce::service
