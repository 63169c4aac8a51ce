#include "app/service_metrics.h"

#include <string>

namespace vmonce::app {

ServiceMetrics::ServiceMetrics(Metrics& metrics)
    : domains_unowned(metrics.NewGauge(
          "vmonce_domains_unowned",
          "Domains with this ledger's label that no record wants; must be 0.", {})),
      operations_with_multiple_domains(metrics.NewGauge(
          "vmonce_operations_with_multiple_domains",
          "Operations with more than one live domain for one index; must be 0.", {})),
      operation_duration(metrics.NewHistogram("vmonce_operation_duration_seconds",
                                              "From an operation's acceptance to its end.", {})),
      ledger_operation_duration(metrics.NewHistogram("vmonce_ledger_operation_duration_seconds",
                                                     "Calls of the ledger.", {})),
      operations_stuck(metrics.NewGauge("vmonce_operations_stuck",
                                        "Unfinished operations that keep failing.", {})),
      oldest_unfinished_age(metrics.NewGauge("vmonce_operation_oldest_unfinished_age_seconds",
                                             "Age of the oldest unfinished operation.", {})),
      outbox_oldest_pending_age(metrics.NewGauge("vmonce_outbox_oldest_pending_age_seconds",
                                                 "Age of the oldest unpublished event.", {})),
      images_changed(metrics.NewGauge(
          "vmonce_images_changed",
          "Image files of the configuration that changed under disks made over them; must be 0.",
          {})),
      reconcile_last_success(
          metrics.NewGauge("vmonce_reconcile_last_success_timestamp_seconds",
                           "When the last sweep of all hosts succeeded, in Unix time.", {})),
      metrics_(metrics) {}

Counter& ServiceMetrics::IdempotencyRequests(std::string_view outcome) const {
  return metrics_.NewCounter("vmonce_idempotency_requests_total",
                             "Requests with an idempotency key, by what the key was.",
                             {{"outcome", std::string(outcome)}});
}

Counter& ServiceMetrics::Operations(std::string_view kind, std::string_view outcome) const {
  return metrics_.NewCounter("vmonce_operations_total", "Operations that ended.",
                             {{"kind", std::string(kind)}, {"outcome", std::string(outcome)}});
}

Gauge& ServiceMetrics::OperationsInState(std::string_view state) const {
  return metrics_.NewGauge("vmonce_operations_in_state", "Operations, by state.",
                           {{"state", std::string(state)}});
}

Histogram& ServiceMetrics::StepDuration(std::string_view step, std::string_view outcome) const {
  return metrics_.NewHistogram("vmonce_operation_step_duration_seconds", "Tries of a step.",
                               {{"step", std::string(step)}, {"outcome", std::string(outcome)}});
}

Gauge& ServiceMetrics::Hosts(bool is_reachable) const {
  return metrics_.NewGauge("vmonce_hosts", "Configured hosts, by whether they answer.",
                           {{"reachable", is_reachable ? "true" : "false"}});
}

Counter& ServiceMetrics::ReconcileActions(std::string_view action) const {
  return metrics_.NewCounter("vmonce_reconcile_actions_total", "What the reconciler did.",
                             {{"action", std::string(action)}});
}

Histogram& ServiceMetrics::HypervisorCallDuration(std::string_view call,
                                                  std::string_view outcome) const {
  return metrics_.NewHistogram("vmonce_hypervisor_call_duration_seconds",
                               "Calls of the hypervisors.",
                               {{"call", std::string(call)}, {"outcome", std::string(outcome)}});
}

Gauge& ServiceMetrics::HttpConnections() const {
  return metrics_.NewGauge("vmonce_http_connections", "Connections that are open.", {});
}

Counter& ServiceMetrics::HttpConnectionsClosed(std::string_view reason) const {
  return metrics_.NewCounter("vmonce_http_connections_closed_total",
                             "Connections that were ended instead of being served.",
                             {{"reason", std::string(reason)}});
}

Gauge& ServiceMetrics::CertificateExpiry() const {
  return metrics_.NewGauge("vmonce_tls_certificate_expiry_timestamp_seconds",
                           "When the certificate in use ends, in Unix time.", {});
}

Histogram& ServiceMetrics::HttpRequestDuration(std::string_view route) const {
  return metrics_.NewHistogram("vmonce_http_request_duration_seconds",
                               "From a whole request to its answer.",
                               {{"route", std::string(route)}});
}

}  // namespace vmonce::app
