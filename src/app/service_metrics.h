// The names of the service's metrics, all of them, with their labels. Alerts stand on these names:
// changing one breaks somebody's.
#pragma once

#include <string_view>

#include "base/metrics.h"

namespace vmonce::app {

// Thread-safe. What has no label, and is the service's promise, stands on the page from the first
// scrape; a function takes a lock unless it is a member, so a hot path keeps the reference. Label
// values come from small closed sets.
class ServiceMetrics {
 public:
  explicit ServiceMetrics(Metrics& metrics);

  // The promise: both must be 0.
  Gauge& domains_unowned;
  Gauge& operations_with_multiple_domains;

  Histogram& operation_duration;  // From acceptance to end.
  Histogram& ledger_operation_duration;
  Gauge& operations_stuck;  // That a person should look at; the service goes on trying.
  Gauge& oldest_unfinished_age;
  Gauge& outbox_oldest_pending_age;
  Gauge& images_changed;  // Files of the configuration that changed under VMs' disks; must be 0.
  Gauge& reconcile_last_success;  // Unix time in seconds; 0 before the first.

  // `outcome`: created, replayed, joined, new_attempt, cancelled; mismatch, expired, refused,
  // failed, failed_for_good; unavailable, ledger_unavailable, overloaded.
  Counter& IdempotencyRequests(std::string_view outcome) const;
  // Of operations that ended. `outcome` is the state in which they did.
  Counter& Operations(std::string_view kind, std::string_view outcome) const;
  Gauge& OperationsInState(std::string_view state) const;
  Histogram& StepDuration(std::string_view step, std::string_view outcome) const;
  // Of the configuration. A host that was not tried yet counts as not reachable.
  Gauge& Hosts(bool is_reachable) const;
  // `action`: missing, found, made_due, quarantined, removed, restarted, stopped, alarmed.
  Counter& ReconcileActions(std::string_view action) const;
  Histogram& HypervisorCallDuration(std::string_view call, std::string_view outcome) const;
  Gauge& HttpConnections() const;
  // `reason`: refused (no room), evicted (owed a request for too long), handshake (TLS failed).
  Counter& HttpConnectionsClosed(std::string_view reason) const;
  // Unix time in seconds; only where TLS is spoken.
  Gauge& CertificateExpiry() const;
  // `route` is the template, such as "/v1/vms/{id}".
  Histogram& HttpRequestDuration(std::string_view route) const;

 private:
  Metrics& metrics_;
};

}  // namespace vmonce::app
