// Keeps the leases this process holds: renews them in time, and tells each holder until when it may
// act.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "model/lease.h"
#include "ports/ledger.h"

namespace vmonce::engine {

// A lease as its holder sees it. Thread-safe.
class HeldLease {
 public:
  HeldLease(model::Lease lease, Instant deadline)
      : lease_(std::move(lease)), deadline_(std::make_shared<std::atomic<Instant>>(deadline)) {}

  const model::Lease& lease() const { return lease_; }
  model::Fence fence() const { return lease_.fence; }
  // Measured from before the ledger was asked, so it is never later than the ledger's own. The
  // past, once lost.
  Instant deadline() const { return deadline_->load(std::memory_order_acquire); }
  // The same, for calls that may outlive this.
  std::shared_ptr<const std::atomic<Instant>> live_deadline() const { return deadline_; }

  void Extend(Instant deadline) { deadline_->store(deadline, std::memory_order_release); }
  void Lose() { deadline_->store(Instant::min(), std::memory_order_release); }

 private:
  const model::Lease lease_;
  // Shared with the effects that stand under it.
  const std::shared_ptr<std::atomic<Instant>> deadline_;
};

struct LeaseTimes {
  Milliseconds ttl{};
  Milliseconds renew_every{};
};

// Thread-safe. What it is given outlives it.
class LeaseKeeper {
 public:
  LeaseKeeper(ports::Ledger& ledger, Clock& clock, Threads& threads, Logger& logger,
              LeaseTimes times);

  // Begins to renew a lease that was granted by a call which began at `asked`.
  // Shared: the keeper renews it while its worker reads it; whoever drops it last frees it.
  std::shared_ptr<HeldLease> Keep(const model::Lease& lease, Instant asked);
  // Stops renewing it. The ledger is not told: giving a lease back is part of the last record.
  void Drop(const HeldLease& lease);

  // Renews all that are held, once. A failing ledger extends nothing: the leases run out by
  // themselves.
  void RunOnce();
  void Run(std::stop_token stop);

  Milliseconds ttl() const { return times_.ttl; }

 private:
  bool IsKept(const HeldLease& lease) const;

  ports::Ledger& ledger_;
  Clock& clock_;
  Threads& threads_;
  Logger& logger_;
  const LeaseTimes times_;
  std::unique_ptr<Monitor> monitor_;
  std::map<model::OperationId, std::shared_ptr<HeldLease>> held_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::engine
