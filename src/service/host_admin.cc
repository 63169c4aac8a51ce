#include "service/host_admin.h"

namespace vmonce::service {
namespace {

std::unexpected<model::Problem> NoSuchHost(const model::HostId& id) {
  model::Problem problem;
  problem.code = "host_not_found";
  problem.detail = "There is no host " + id.value + ". GET /v1/hosts lists those that there are.";
  return std::unexpected(std::move(problem));
}

}  // namespace

Answered<HostView> HostAdmin::Declare(const model::HostId& id, model::HostState state) {
  if (const Status set = fleet_.SetState(id, state); !set) {
    if (set.error().code == ErrorCode::kNotFound) return NoSuchHost(id);
    return std::unexpected(LedgerProblem(set.error()));
  }
  reconciler_.Trigger(id);
  Answered<std::vector<HostView>> hosts = queries_.Hosts();
  if (!hosts) return std::unexpected(std::move(hosts.error()));
  for (HostView& view : *hosts) {
    if (view.host.id == id) return std::move(view);
  }
  return NoSuchHost(id);
}

}  // namespace vmonce::service
