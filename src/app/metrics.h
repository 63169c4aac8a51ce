// The process's metrics, and how a scrape sees them. prometheus-cpp checks names and writes the
// text; why the values are our own stands in docs/decisions/0001-metrics.md.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/threads.h"

namespace vmonce::app {

class PrometheusMetrics final : public Metrics {
 public:
  explicit PrometheusMetrics(Threads& threads);
  ~PrometheusMetrics() override;
  PrometheusMetrics(const PrometheusMetrics&) = delete;
  PrometheusMetrics& operator=(const PrometheusMetrics&) = delete;

  Counter& NewCounter(std::string_view name, std::string_view help, MetricLabels labels) override;
  Gauge& NewGauge(std::string_view name, std::string_view help, MetricLabels labels) override;
  Histogram& NewHistogram(std::string_view name, std::string_view help,
                          MetricLabels labels) override;

  // Prometheus' text exposition format 0.0.4 (content type kMetricsContentType), names and series
  // in the order of their bytes. What is counted meanwhile may be in it or not; each histogram's
  // figures agree with each other.
  std::string Render() const;

 private:
  struct Family;
  enum class Kind;

  Family& FamilyOf(std::string_view name, std::string_view help, Kind kind) REQUIRES(*monitor_);

  const std::unique_ptr<Monitor> monitor_;
  std::map<std::string, std::unique_ptr<Family>, std::less<>> families_ GUARDED_BY(*monitor_);
};

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace vmonce::app
