#include "service/capacity.h"

namespace vmonce::service {

Result<model::Resources> Capacity::Total() {
  MonitorLock lock(*monitor_);
  const Instant now = clock_.Monotonic();
  if (total_ && now - read_at_ < max_age_) return *total_;
  const Result<std::vector<model::Host>> hosts = ledger_.Hosts();
  if (!hosts) return std::unexpected(hosts.error());
  model::Resources total;
  for (const model::Host& host : *hosts) {
    // A host that takes nothing new still holds what it has.
    const bool is_active = host.state == model::HostState::kActive;
    total = total + (is_active ? host.capacity : host.reserved);
  }
  total_ = total;
  read_at_ = now;
  return total;
}

}  // namespace vmonce::service
