#include <fmt/format.h>

#include "base/rfc3339.h"
#include "model/limits.h"
#include "service/pending.h"
#include "service/queries.h"

namespace vmonce::service {
namespace {

using std::chrono::seconds;

model::Problem Make(std::string code, std::string detail) {
  model::Problem problem;
  problem.code = std::move(code);
  problem.detail = std::move(detail);
  return problem;
}

bool IsKnownCode(std::string_view code) {
  return std::ranges::any_of(model::AllProblemKinds(),
                             [&](const model::ProblemKind& kind) { return kind.code == code; });
}

}  // namespace

model::Problem ProblemOf(const ports::Declined& declined) {
  using Reason = ports::DeclineReason;
  const std::string& more = declined.detail;
  switch (declined.reason) {
    case Reason::kNameTaken: {
      model::Problem problem =
          Make("name_taken", "Nothing was done: " + more +
                                 ". Choose another name (the same key may be used), or use the VM "
                                 "that has it.");
      problem.vm = declined.other_vm;
      return problem;
    }
    case Reason::kQuotaExceeded:
      return Make("quota_exceeded", "The project's quota does not allow this: " + more +
                                        ". Nothing was created and the key is not used up.");
    case Reason::kNoCapacity: {
      model::Problem problem = Make(
          "no_capacity", "No host has room for this now: " + more + ". The key is not used up.");
      problem.retry_after = seconds(10);
      return problem;
    }
    case Reason::kVmNotFound: return Make("vm_not_found", "There is no such VM in this project.");
    case Reason::kStaleVersion:
      return Make(
          "precondition_failed",
          "The VM has changed since the version in If-Match. Read it again and decide anew.");
    case Reason::kWrongState: {
      const std::string state =
          declined.vm_state ? std::string(ToString(*declined.vm_state)) : "unknown";
      return Make("wrong_state", "The VM is " + state + "; this needs another state. " + more);
    }
    case Reason::kImageGone: return ImageNotFound(more);
    case Reason::kTooManyKeys: {
      model::Problem problem =
          Make("too_many_keys",
               "The project has used up its keys: " + more +
                   ". Nothing happened and this key is not used up. Records go some time after "
                   "their VMs: delete VMs, or ask the operator for a larger quota.");
      problem.retry_after = model::limits::kRetryAfterMax;
      return problem;
    }
    case Reason::kBacklogFull: {
      model::Problem problem = Make("backlog_full", "Too much accepted work waits: " + more +
                                                        ". Send the same request with the same key "
                                                        "later.");
      problem.retry_after = seconds(5);
      return problem;
    }
    case Reason::kPortTaken:
      return Make("host_port_taken",
                  "Nothing was done: another VM has the host's " + more +
                      ". Ask for another host_port, or leave it out and any free one is taken (the "
                      "same key may be used).");
  }
  return Make("internal", "The ledger declined for a reason that is not known here.");
}

model::Problem StoredProblem(const model::Operation& operation) {
  const model::Failure failure = operation.failure.value_or(model::Failure{});
  // A cause that has no row of its own is told in the detail.
  const bool is_known = IsKnownCode(failure.code);
  model::Problem problem =
      is_known ? Make(failure.code, failure.detail)
               : Make("hypervisor_refused", fmt::format("{} ({})", failure.detail, failure.code));
  problem.operation = operation.id;
  problem.first_seen = operation.accepted;
  problem.retry_same_key = failure.passing;
  if (operation.items.size() == 1) problem.vm = model::VmId{operation.items.front().subject};
  if (failure.passing) problem.retry_after = seconds(5);
  return problem;
}

model::Problem ExpiredProblem(const model::Tombstone& tombstone) {
  model::Problem problem =
      Make("idempotency_key_expired",
           fmt::format("This key was used long ago; its operation {} and what it made is gone. "
                       "Nothing was created now. A new machine needs a new key.",
                       ToString(tombstone.final_state)));
  if (!tombstone.vms.empty()) problem.vm = tombstone.vms.front();
  problem.first_seen = tombstone.first_seen;
  return problem;
}

model::Problem FirstSentTooFar(Time first_sent, Time now) {
  return Make(
      "first_sent_too_far",
      fmt::format("The key is not known here, and the request says that it was first sent at "
                  "{}; it is {} now. Nothing happened and the key is not used up. Look "
                  "whether an earlier try made anything, then send it with the time of now.",
                  FormatRfc3339(first_sent), FormatRfc3339(now)));
}

model::Problem OverloadedProblem() {
  model::Problem problem = Make("overloaded",
                                "Too many requests wait. Nothing happened and the key is not used "
                                "up; send the same request again.");
  problem.retry_after = seconds(1);
  return problem;
}

model::Problem ImageNotFound(const std::string& name) {
  model::Problem problem =
      Make("image_not_found", "There is no image '" + name + "'. GET /v1/images lists them.");
  problem.fields.push_back({"/image", "no such image"});
  return problem;
}

model::Problem NotOffered(const std::string& why) {
  return Make("network_not_offered",
              "Nothing was done: " + why + ". GET /v1/hosts lists what hosts offer.");
}

Result<std::vector<model::Vm>> VmsOfOperation(ports::Ledger& ledger,
                                              const model::Operation& operation) {
  if (operation.kind == model::OperationKind::kCreate) return ledger.VmsOf(operation.id);
  std::vector<model::Vm> vms;
  for (const model::Item& item : operation.items) {
    Result<std::optional<model::Vm>> vm = ledger.GetVm({item.subject});
    if (!vm) return std::unexpected(vm.error());
    if (vm->has_value()) vms.push_back(std::move(**vm));
  }
  return vms;
}

}  // namespace vmonce::service
