// Turns what happens inside the service into metrics.
#pragma once

#include <map>
#include <string>

#include "app/service_metrics.h"
#include "base/clock.h"
#include "engine/observer.h"
#include "http/server.h"
#include "ports/ledger.h"
#include "service/reconciler.h"
#include "service/vm_service.h"
#include "service/waiters.h"
#include "workflows/fleet.h"

namespace vmonce::app {

// Thread-safe. What it is given outlives it.
class MeteredWork final : public engine::WorkObserver {
 public:
  MeteredWork(const ServiceMetrics& metrics, service::Waiters& waiters, Clock& clock)
      : metrics_(metrics), waiters_(waiters), clock_(clock) {}

  void StepTried(model::OperationKind kind, std::string_view step, std::string_view outcome,
                 Milliseconds took) override;
  void OperationEnded(const model::Operation& operation) override;

 private:
  const ServiceMetrics& metrics_;
  service::Waiters& waiters_;
  Clock& clock_;
};

// Brings the gauges up to date from the ledger and the last sweeps; called before each scrape, by
// one thread at a time.
class Scrape {
 public:
  Scrape(const ServiceMetrics& metrics, ports::Ledger& ledger, const workflows::Fleet& fleet,
         const service::VmService& service, const service::Reconciler& reconciler, Threads& threads)
      : metrics_(metrics),
        ledger_(ledger),
        fleet_(fleet),
        service_(service),
        reconciler_(reconciler),
        monitor_(threads.NewMonitor()) {}

  void Update();
  // What the server tells of itself; before Update().
  void UpdateHttp(const http::Server& server);

 private:
  void UpdateLedger();
  void UpdateHosts();
  void UpdateReconciler();

  const ServiceMetrics& metrics_;
  ports::Ledger& ledger_;
  const workflows::Fleet& fleet_;
  const service::VmService& service_;
  const service::Reconciler& reconciler_;
  std::unique_ptr<Monitor> monitor_;
  // What was counted up to the last scrape.
  std::map<std::string, std::int64_t> counted_ GUARDED_BY(*monitor_);
  std::map<std::string, std::int64_t> acted_ GUARDED_BY(*monitor_);
  std::map<std::string, std::uint64_t> closed_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::app
