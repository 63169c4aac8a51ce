#include "service/capacity.h"

namespace vmonce::service {

Result<model::Resources> Capacity::Total() {
  {
    MonitorLock lock(*monitor_);
    // Nothing at all is no figure to be kept: the first host may be there by now.
    const bool is_any = total_ && *total_ != model::Resources{};
    if (is_any && clock_.Monotonic() - read_at_ < max_age_) return *total_;
  }
  return Refresh();
}

Result<model::Resources> Capacity::Refresh() {
  const Instant now = clock_.Monotonic();
  const Result<std::vector<model::Host>> hosts = ledger_.Hosts();
  if (!hosts) return std::unexpected(hosts.error());
  model::Resources total;
  for (const model::Host& host : *hosts) {
    // A host that takes nothing new still holds what it has.
    const bool is_active = host.state == model::HostState::kActive;
    total = total + (is_active ? host.capacity : host.reserved);
  }
  MonitorLock lock(*monitor_);
  total_ = total;
  read_at_ = now;
  return total;
}

}  // namespace vmonce::service
