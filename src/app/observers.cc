#include "app/observers.h"

namespace vmonce::app {
namespace {

double Seconds(Milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void MeteredWork::StepTried(model::OperationKind, std::string_view step, std::string_view outcome,
                            Milliseconds took) {
  metrics_.StepDuration(step, outcome).Observe(Seconds(took));
}

void MeteredWork::OperationEnded(const model::Operation& operation) {
  metrics_.Operations(ToString(operation.kind), ToString(operation.state)).Add(1);
  metrics_.operation_duration.Observe(Seconds(clock_.Now() - operation.accepted));
  waiters_.Ended(operation.id);
}

void Scrape::Update() {
  MonitorLock lock(*monitor_);
  for (const auto& [outcome, count] : service_.OutcomeCounts()) {
    std::int64_t& counted = counted_[outcome];
    metrics_.IdempotencyRequests(outcome).Add(static_cast<std::uint64_t>(count - counted));
    counted = count;
  }
  for (const auto& [action, count] : reconciler_.ActionCounts()) {
    std::int64_t& acted = acted_[action];
    metrics_.ReconcileActions(action).Add(static_cast<std::uint64_t>(count - acted));
    acted = count;
  }
  UpdateLedger();
  UpdateHosts();
  UpdateReconciler();
}

void Scrape::UpdateHttp(const http::Server& server) {
  MonitorLock lock(*monitor_);
  const http::ConnectionCounts counts = server.Counts();
  metrics_.HttpConnections().Set(static_cast<double>(counts.open));
  const std::pair<const char*, std::uint64_t> ended[] = {{"refused", counts.refused},
                                                         {"evicted", counts.evicted},
                                                         {"handshake", counts.failed_handshakes}};
  for (const auto& [reason, count] : ended) {
    std::uint64_t& closed = closed_[reason];
    metrics_.HttpConnectionsClosed(reason).Add(count - closed);
    closed = count;
  }
  const std::optional<Time> expires = server.CertificateExpires();
  if (expires) metrics_.CertificateExpiry().Set(static_cast<double>(ToUnixMs(*expires)) / 1000);
}

void Scrape::UpdateLedger() {
  const Result<ports::LedgerTotals> totals = ledger_.Totals();
  if (!totals) return;
  for (const auto& [state, count] : totals->operations_in_state) {
    metrics_.OperationsInState(state).Set(static_cast<double>(count));
  }
  metrics_.operations_stuck.Set(static_cast<double>(totals->stuck));
  const Time now = ledger_.Now();
  const auto age = [now](const std::optional<Time>& since) {
    return since ? Seconds(now - *since) : 0.0;
  };
  metrics_.oldest_unfinished_age.Set(age(totals->oldest_unfinished));
  metrics_.outbox_oldest_pending_age.Set(age(totals->oldest_event));
}

void Scrape::UpdateHosts() {
  int reachable = 0;
  const std::vector<model::HostId> ids = fleet_.Ids();
  for (const model::HostId& id : ids) reachable += fleet_.StatusOf(id).is_reachable ? 1 : 0;
  metrics_.Hosts(true).Set(reachable);
  metrics_.Hosts(false).Set(static_cast<double>(ids.size()) - reachable);
}

// What the sweeps saw is the state of the world, so these are gauges of the last ones.
void Scrape::UpdateReconciler() {
  int unowned = 0;
  std::optional<Time> oldest;
  for (const service::LastSweep& sweep : reconciler_.LastSweeps()) {
    unowned += sweep.report.strays;
    if (!sweep.report.problem.empty()) continue;
    oldest = std::min(oldest.value_or(sweep.at), sweep.at);
  }
  metrics_.domains_unowned.Set(unowned);
  metrics_.operations_with_multiple_domains.Set(reconciler_.SecondCopies());
  if (oldest) metrics_.reconcile_last_success.Set(static_cast<double>(ToUnixMs(*oldest)) / 1000);
}

}  // namespace vmonce::app
