// What a sweep does about machines that their host took down, and about hosts that an operator
// declared dead.
#include <limits>

#include "model/idempotency.h"
#include "model/limits.h"
#include "model/restart.h"
#include "workflows/reconcile_view.h"

namespace vmonce::workflows {
namespace {

using model::Vm;
using model::VmState;

constexpr std::string_view kFace = "reconciler";

ports::Submission RestartOf(const WorkflowParts& parts, const Vm& vm) {
  ports::Submission submission;
  model::Operation& operation = submission.operation;
  operation.id = {NewUuidV7(parts.clock, parts.random)};
  operation.project = vm.project;
  operation.kind = model::OperationKind::kStart;
  model::RequestImage request;
  request.method = "POST";
  request.route = "/v1/vms/" + ToString(vm.id) + "/start";
  operation.fingerprint = model::Fingerprint(request);
  operation.fingerprint_version = model::kFingerprintVersion;
  operation.canonical_request = model::CanonicalRequest(request);
  operation.intent = "{}";
  operation.face = kFace;
  operation.items.emplace_back().subject = vm.id.value;
  submission.change = ports::RestartVm{vm.id, vm.version};
  submission.events.push_back(VmEvent(parts, "vm.restarting", vm, operation.id));
  // Nobody waits for an answer that could say "later": a host's machines come back together.
  submission.max_backlog = std::numeric_limits<std::int64_t>::max();
  return submission;
}

}  // namespace

// Begun here and done by a worker, under lease and fence. The rows are read again: what was
// observed a moment ago is written now, and made a new version.
void ReconcileVms::Restart(const View& view, ReconcileReport& report) const {
  const Result<std::vector<Vm>> rows = parts_.ledger.VmsOnHost(view.host, {});
  if (!rows) return;
  std::vector<ports::Submission> due;
  for (const Vm& row : *rows) {
    if (IsRestartStuck(row)) ++report.stuck;
    if (row.holder || JudgeRestart(row, view.now) != model::RestartVerdict::kDue) continue;
    if (due.size() < model::limits::kIntakeBatch) due.push_back(RestartOf(parts_, row));
  }
  if (due.empty()) return;
  for (const ports::AcceptOutcome& outcome : parts_.ledger.Accept(due)) {
    // Refused or in doubt: the next sweep finds what is so.
    if (!outcome) continue;
    const auto* accepted = std::get_if<ports::Accepted>(&*outcome);
    if (accepted == nullptr) continue;
    ++report.restarted;
    const Vm& vm = accepted->vms.front();
    logger_.Warning("vm_restarting", {{"vm", ToString(vm.id)},
                                      {"host", view.host.value},
                                      {"restarts", vm.restarts},
                                      {"operation", ToString(accepted->operation.id)}});
  }
}

// The host is declared dead: its machines are missing until it is back, and what waits for it goes
// on without it.
void ReconcileVms::GiveUpOn(const model::HostId& host, ReconcileReport& report) const {
  const Result<std::vector<Vm>> rows = parts_.ledger.VmsOnHost(host, {});
  if (!rows) return;
  std::vector<ports::Observation> observations;
  for (const Vm& row : *rows) {
    const auto waiting = row.delete_operation ? row.delete_operation : row.holder;
    if (waiting && parts_.ledger.MakeDue(*waiting)) ++report.made_due;
    if (row.delete_operation || row.state != VmState::kReady) continue;
    ports::Observation observation;
    observation.vm = row.id;
    observation.version = row.version;
    observation.state = VmState::kMissing;
    observation.events.push_back(VmEvent(parts_, "vm.missing", row, row.operation));
    observations.push_back(std::move(observation));
  }
  const Result<int> stood = parts_.ledger.Observe(observations);
  if (!stood) return;
  report.missing = *stood;
}

// Before the host is used again. Whoever deletes from now on does it there, since the host was not
// dead any more when it was listed; a delete that still took it for dead has marked its VM.
Status ReconcileVms::WelcomeBack(const View& view, ReconcileReport& report) const {
  if (!view.is_returning) return {};
  for (const auto& [id, domain] : view.ours) {
    const auto row = view.rows.find(id);
    const bool has_row = row != view.rows.end();
    const bool is_gone = has_row ? row->second.delete_operation.has_value() ||
                                       row->second.state == VmState::kDeleted ||
                                       (row->second.state == VmState::kFailed && !row->second.host)
                                 : view.in_tombstones.contains(id);
    if (!is_gone && !view.moved_away.contains(id)) continue;
    if (domain.power == model::Observed::kStopped) continue;
    if (const Status off = view.hypervisor->Destroy(id, GuardOf(view, id)); !off) {
      return Context("stopping a machine that this host should not run", off.error());
    }
    ++report.stopped;
    logger_.Warning("leftover_stopped", {{"vm", ToString(id)}, {"host", view.host.value}});
  }
  return parts_.ledger.MarkReturned(view.host);
}

}  // namespace vmonce::workflows
