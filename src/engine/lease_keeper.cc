#include "engine/lease_keeper.h"

#include "base/check.h"

namespace vmonce::engine {

LeaseKeeper::LeaseKeeper(ports::Ledger& ledger, Clock& clock, Threads& threads, Logger& logger,
                         LeaseTimes times)
    : ledger_(ledger),
      clock_(clock),
      threads_(threads),
      logger_(logger),
      times_(times),
      monitor_(threads.NewMonitor()) {
  CHECK(times_.renew_every > Milliseconds(0) && times_.renew_every * 2 < times_.ttl);
}

std::shared_ptr<HeldLease> LeaseKeeper::Keep(const model::Lease& lease, Instant asked) {
  auto held = std::make_shared<HeldLease>(lease, asked + times_.ttl);
  MonitorLock lock(*monitor_);
  held_[lease.operation] = held;
  return held;
}

void LeaseKeeper::Drop(const HeldLease& lease) {
  MonitorLock lock(*monitor_);
  const auto found = held_.find(lease.lease().operation);
  if (found != held_.end() && found->second.get() == &lease) held_.erase(found);
}

bool LeaseKeeper::IsKept(const HeldLease& lease) const {
  MonitorLock lock(*monitor_);
  const auto found = held_.find(lease.lease().operation);
  return found != held_.end() && found->second.get() == &lease;
}

void LeaseKeeper::RunOnce() {
  std::vector<std::shared_ptr<HeldLease>> all;
  {
    MonitorLock lock(*monitor_);
    for (const auto& [id, held] : held_) all.push_back(held);
  }
  if (all.empty()) return;

  std::vector<model::Lease> leases;
  for (const auto& held : all) leases.push_back(held->lease());
  const Instant asked = clock_.Monotonic();
  const Result<std::vector<model::OperationId>> lost = ledger_.Renew(leases, times_.ttl);
  if (!lost) {
    logger_.Warning("lease_renewal_failed",
                    {{"leases", leases.size()}, {"cause", lost.error().detail}});
    return;
  }
  for (const auto& held : all) {
    const bool is_lost = std::ranges::find(*lost, held->lease().operation) != lost->end();
    if (is_lost) {
      held->Lose();
      // Given back by its last record while this was asked: nothing was lost.
      if (!IsKept(*held)) continue;
      logger_.Warning("lease_lost", {{"operation", ToString(held->lease().operation)}});
    } else {
      held->Extend(asked + times_.ttl);
    }
  }
}

void LeaseKeeper::Run(std::stop_token stop) {
  while (threads_.SleepFor(times_.renew_every, stop)) RunOnce();
}

}  // namespace vmonce::engine
