#include "service/reconciler.h"

namespace vmonce::service {

Reconciler::Reconciler(const workflows::WorkflowParts& parts, Threads& threads, Logger& logger,
                       workflows::ReconcileSettings settings, Milliseconds period)
    : parts_(parts), sweeper_(parts, logger, settings), monitor_(threads.NewMonitor()) {
  for (const model::HostId& id : parts.fleet.Ids()) {
    auto host = std::make_unique<HostLoop>();
    host->id = id;
    host->sweeping = threads.NewMonitor();
    HostLoop& swept = *host;
    host->loop = std::make_unique<engine::Periodic>(
        "reconcile", period, [this, &swept] { Sweep(swept); }, parts.clock, threads);
    hosts_.push_back(std::move(host));
  }
}

Reconciler::~Reconciler() { Stop(); }

void Reconciler::Start() {
  for (const auto& host : hosts_) host->loop->Start();
}

void Reconciler::Stop() {
  for (const auto& host : hosts_) host->loop->Stop();
}

std::vector<workflows::ReconcileReport> Reconciler::SweepAll() {
  std::vector<workflows::ReconcileReport> reports;
  for (const auto& host : hosts_) reports.push_back(Sweep(*host));
  return reports;
}

void Reconciler::Trigger(const model::HostId& host) {
  for (const auto& swept : hosts_) {
    if (swept->id == host) swept->loop->Trigger();
  }
}

workflows::ReconcileReport Reconciler::Sweep(HostLoop& host) {
  MonitorLock one_at_a_time(*host.sweeping);
  workflows::ReconcileReport report = sweeper_.Sweep(host.id);
  MonitorLock lock(*monitor_);
  last_[host.id] = {report, parts_.ledger.Now()};
  actions_["missing"] += report.missing;
  actions_["found"] += report.found;
  actions_["made_due"] += report.made_due;
  actions_["quarantined"] += report.quarantined;
  actions_["removed"] += report.removed;
  actions_["restarted"] += report.restarted;
  actions_["stopped"] += report.stopped;
  actions_["alarmed"] += report.is_alarmed ? 1 : 0;
  return report;
}

std::vector<LastSweep> Reconciler::LastSweeps() const {
  std::vector<LastSweep> sweeps;
  MonitorLock lock(*monitor_);
  for (const auto& [id, sweep] : last_) sweeps.push_back(sweep);
  return sweeps;
}

std::map<std::string, std::int64_t> Reconciler::ActionCounts() const {
  MonitorLock lock(*monitor_);
  return actions_;
}

int Reconciler::SecondCopies() const {
  int copies = 0;
  MonitorLock lock(*monitor_);
  for (const auto& [id, sweep] : last_) copies += sweep.report.second_copies;
  return copies;
}

}  // namespace vmonce::service
