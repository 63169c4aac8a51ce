#include "service/queries.h"

#include <algorithm>

namespace vmonce::service {
namespace {

std::unexpected<model::Problem> NotFound(std::string code, std::string detail) {
  model::Problem problem;
  problem.code = std::move(code);
  problem.detail = std::move(detail);
  return std::unexpected(std::move(problem));
}

std::unexpected<model::Problem> ReadFailed(const Error& error) {
  if (error.code != ErrorCode::kInvalid) return std::unexpected(LedgerProblem(error));
  model::Problem problem;
  problem.code = "invalid_request";
  problem.detail = error.detail;
  problem.fields.push_back({"cursor", error.detail});
  return std::unexpected(std::move(problem));
}

}  // namespace

model::Problem LedgerProblem(const Error& error) {
  model::Problem problem;
  problem.code = "ledger_unavailable";
  problem.detail =
      "The ledger does not answer now (" + error.detail +
      "). Nothing more is known of this request than before; send it again with the same key.";
  problem.retry_after = std::chrono::seconds(2);
  return problem;
}

Answered<model::Vm> Queries::GetVm(const Caller& caller, const model::VmId& id) const {
  Result<std::optional<model::Vm>> vm = ledger_.GetVm(id);
  if (!vm) return ReadFailed(vm.error());
  if (!vm->has_value() || (*vm)->project != caller.project) {
    return NotFound("vm_not_found", "There is no VM " + ToString(id) + " in this project.");
  }
  return std::move(**vm);
}

Answered<ports::PageOf<model::Vm>> Queries::ListVms(const Caller& caller,
                                                    const ports::VmFilter& filter,
                                                    const ports::Page& page) const {
  Result<ports::PageOf<model::Vm>> rows = ledger_.ListVms(caller.project, filter, page);
  if (!rows) return ReadFailed(rows.error());
  return std::move(*rows);
}

Answered<model::Operation> Queries::GetOperation(const Caller& caller,
                                                 const model::OperationId& id) const {
  Result<std::optional<model::Operation>> operation = ledger_.GetOperation(id);
  if (!operation) return ReadFailed(operation.error());
  if (!operation->has_value() || (*operation)->project != caller.project) {
    return NotFound("operation_not_found",
                    "There is no operation " + ToString(id) + " in this project.");
  }
  return std::move(**operation);
}

Answered<ports::PageOf<model::Operation>> Queries::ListOperations(
    const Caller& caller, const ports::OperationFilter& filter, const ports::Page& page) const {
  Result<ports::PageOf<model::Operation>> rows =
      ledger_.ListOperations(caller.project, filter, page);
  if (!rows) return ReadFailed(rows.error());
  return std::move(*rows);
}

Answered<std::vector<model::TimelineEntry>> Queries::Timeline(const Caller& caller,
                                                              const model::OperationId& id) const {
  if (Answered<model::Operation> operation = GetOperation(caller, id); !operation) {
    return std::unexpected(std::move(operation.error()));
  }
  Result<std::vector<model::TimelineEntry>> lines = ledger_.Timeline(id);
  if (!lines) return ReadFailed(lines.error());
  return std::move(*lines);
}

Answered<ports::ConsoleChunk> Queries::Console(const Caller& caller, const model::VmId& id,
                                               std::int64_t offset, std::size_t most) const {
  Answered<model::Vm> vm = GetVm(caller, id);
  if (!vm) return std::unexpected(std::move(vm.error()));
  const auto not_ready = [&](const std::string& why) {
    return NotFound("console_not_ready", "VM " + ToString(id) + " (" +
                                             std::string(ToString(vm->state)) +
                                             ") has no console now: " + why + ".");
  };
  if (!vm->host) return not_ready("it is on no host");
  ports::Hypervisor* hypervisor = fleet_.Find(*vm->host);
  if (hypervisor == nullptr) return not_ready("its host is not in the configuration");
  Result<ports::ConsoleChunk> chunk = hypervisor->ReadConsole(id, offset, most);
  if (chunk) return std::move(*chunk);
  if (chunk.error().code == ErrorCode::kNotFound) return not_ready("nothing was written yet");
  model::Problem problem;
  problem.code = "hypervisor_unavailable";
  problem.detail = chunk.error().detail;
  problem.retry_after = std::chrono::seconds(2);
  return std::unexpected(std::move(problem));
}

Answered<std::vector<HostView>> Queries::Hosts() const {
  Result<std::vector<model::Host>> rows = ledger_.Hosts();
  if (!rows) return ReadFailed(rows.error());
  std::vector<HostView> views;
  for (model::Host& host : *rows) {
    workflows::HostStatus status = fleet_.StatusOf(host.id);
    std::vector<std::string> networks = fleet_.NetworksOf(host.id);
    views.push_back({std::move(host), std::move(status), std::move(networks)});
  }
  // A host that was never reached has no row yet.
  for (const model::HostId& id : fleet_.Ids()) {
    const bool is_there =
        std::ranges::any_of(views, [&](const HostView& view) { return view.host.id == id; });
    if (is_there) continue;
    model::Host host;
    host.id = id;
    host.uri = fleet_.UriOf(id);
    views.push_back({std::move(host), fleet_.StatusOf(id), fleet_.NetworksOf(id)});
  }
  return views;
}

Answered<model::Resources> Queries::Usage(const Caller& caller) const {
  Result<model::Resources> usage = ledger_.Usage(caller.project);
  if (!usage) return ReadFailed(usage.error());
  return *usage;
}

Answered<ProjectQuota> Queries::Held(const Caller& caller) const {
  Answered<model::Resources> usage = Usage(caller);
  if (!usage) return std::unexpected(std::move(usage.error()));
  Result<std::int64_t> keys = ledger_.LiveKeys(caller.project);
  if (!keys) return ReadFailed(keys.error());
  return ProjectQuota{*usage, *keys};
}

Answered<void> Queries::Ready() const {
  if (const Status ping = ledger_.Ping(); !ping) return ReadFailed(ping.error());
  const std::vector<model::HostId> hosts = fleet_.Ids();
  const bool is_any_reachable = std::ranges::any_of(
      hosts, [&](const model::HostId& id) { return fleet_.StatusOf(id).is_reachable; });
  if (is_any_reachable) return {};
  model::Problem problem;
  problem.code = "hypervisor_unavailable";
  problem.detail = "No host answers now. GET /v1/hosts tells an operator why.";
  problem.retry_after = std::chrono::seconds(2);
  return std::unexpected(std::move(problem));
}

}  // namespace vmonce::service
