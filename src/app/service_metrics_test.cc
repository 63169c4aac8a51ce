#include "app/service_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/metrics.h"
#include "base/system.h"

namespace vmonce::app {
namespace {

using testing::HasSubstr;

TEST(ServiceMetrics, ThePromiseStandsOnThePageFromTheStart) {
  const auto threads = NewSystemThreads();
  PrometheusMetrics metrics(*threads);
  const ServiceMetrics service(metrics);
  EXPECT_THAT(metrics.Render(), HasSubstr("\nvmonce_domains_unowned 0\n"));
  EXPECT_THAT(metrics.Render(), HasSubstr("\nvmonce_operations_with_multiple_domains 0\n"));
}

TEST(ServiceMetrics, NamesAndLabelsAreThoseThatAlertsStandOn) {
  const auto threads = NewSystemThreads();
  PrometheusMetrics metrics(*threads);
  const ServiceMetrics service(metrics);
  service.operation_duration.Observe(1);
  service.ledger_operation_duration.Observe(1);
  service.oldest_unfinished_age.Set(1);
  service.outbox_oldest_pending_age.Set(1);
  service.reconcile_last_success.Set(1);
  service.IdempotencyRequests("replayed").Add(1);
  service.Operations("create", "succeeded").Add(1);
  service.OperationsInState("running").Set(1);
  service.StepDuration("disk", "done").Observe(1);
  service.ReconcileActions("missing").Add(1);
  service.HypervisorCallDuration("define", "ok").Observe(1);
  service.HttpRequestDuration("/v1/vms/{id}").Observe(1);
  service.HttpConnections().Set(1);
  service.HttpConnectionsClosed("refused").Add(1);
  service.CertificateExpiry().Set(1);
  const std::string page = metrics.Render();
  for (const char* line :
       {"vmonce_operation_duration_seconds_count 1\n",
        "vmonce_ledger_operation_duration_seconds_count 1\n",
        "vmonce_operation_oldest_unfinished_age_seconds 1\n",
        "vmonce_outbox_oldest_pending_age_seconds 1\n",
        "vmonce_reconcile_last_success_timestamp_seconds 1\n",
        "vmonce_idempotency_requests_total{outcome=\"replayed\"} 1\n",
        "vmonce_operations_total{kind=\"create\",outcome=\"succeeded\"} 1\n",
        "vmonce_operations_in_state{state=\"running\"} 1\n",
        "vmonce_operation_step_duration_seconds_count{outcome=\"done\",step=\"disk\"} 1\n",
        "vmonce_reconcile_actions_total{action=\"missing\"} 1\n",
        "vmonce_hypervisor_call_duration_seconds_count{call=\"define\",outcome=\"ok\"} 1\n",
        "vmonce_http_connections 1\n",
        "vmonce_http_connections_closed_total{reason=\"refused\"} 1\n",
        "vmonce_tls_certificate_expiry_timestamp_seconds 1\n",
        "vmonce_http_request_duration_seconds_count{route=\"/v1/vms/{id}\"} 1\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

}  // namespace
}  // namespace vmonce::app
