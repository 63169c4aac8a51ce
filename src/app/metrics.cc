#include "app/metrics.h"

#include <prometheus/check_names.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

// Upper bounds in seconds: a commit is around a millisecond, a step around a second, a create on a
// slow host minutes.
constexpr std::array kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,   0.25,
                                0.5,    1.0,   2.5,    5.0,   10.0, 30.0,  60.0, 120.0, 600.0};

// A value that a scrape can read.
class Series {
 public:
  virtual ~Series() = default;
  virtual void Collect(ClientMetric& metric) const = 0;
};

class AtomicCounter final : public Counter, public Series {
 public:
  void Add(std::uint64_t n) override { value_.fetch_add(n, std::memory_order_relaxed); }
  void Collect(ClientMetric& metric) const override {
    metric.counter.value = static_cast<double>(value_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class AtomicGauge final : public Gauge, public Series {
 public:
  void Set(double value) override { value_.store(value, std::memory_order_relaxed); }
  void Collect(ClientMetric& metric) const override {
    metric.gauge.value = value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<double> value_{0};
};

class AtomicHistogram final : public Histogram, public Series {
 public:
  void Observe(double seconds) override {
    // A NaN would spoil the sum for good; it is no duration either.
    const double value = seconds > 0 ? seconds : 0;
    const auto bucket = std::ranges::lower_bound(kBounds, value) - kBounds.begin();
    counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  // The count is the sum of the buckets as they were read, so that they always agree.
  void Collect(ClientMetric& metric) const override {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      count += counts_[i].load(std::memory_order_relaxed);
      const double bound =
          i < kBounds.size() ? kBounds[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({count, bound});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = sum_.load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<double> sum_{0};
};

void CheckLabels(const MetricLabels& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    CHECK_MSG(prometheus::CheckLabelName(labels[i].first), labels[i].first);
    // "le" is the histogram's own.
    CHECK_MSG(labels[i].first != "le", labels[i].first);
    CHECK_MSG(i == 0 || labels[i - 1].first != labels[i].first, labels[i].first);
  }
}

bool HaveSameNames(const MetricLabels& a, const MetricLabels& b) {
  return std::ranges::equal(a, b, {}, &MetricLabels::value_type::first,
                            &MetricLabels::value_type::first);
}

}  // namespace

enum class PrometheusMetrics::Kind { kCounter, kGauge, kHistogram };

struct PrometheusMetrics::Family {
  std::string help;
  Kind kind;
  std::map<MetricLabels, std::unique_ptr<Series>> series;

  // `T` belongs to `kind`.
  template <typename T>
  T& Get(std::string_view name, MetricLabels labels) {
    std::ranges::sort(labels);
    // Checked when it was made.
    if (const auto known = series.find(labels); known != series.end()) {
      return static_cast<T&>(*known->second);
    }
    CheckLabels(labels);
    CHECK_MSG(series.empty() || HaveSameNames(series.begin()->first, labels), name);
    if (series.size() >= model::limits::kMetricSeries) {
      for (auto& label : labels) label.second = "other";
    }
    auto [entry, is_new] = series.try_emplace(std::move(labels));
    if (is_new) entry->second = std::make_unique<T>();
    return static_cast<T&>(*entry->second);
  }
};

PrometheusMetrics::PrometheusMetrics(Threads& threads) : monitor_(threads.NewMonitor()) {}

PrometheusMetrics::~PrometheusMetrics() = default;

Counter& PrometheusMetrics::NewCounter(std::string_view name, std::string_view help,
                                       MetricLabels labels) {
  const MonitorLock lock(*monitor_);
  return FamilyOf(name, help, Kind::kCounter).Get<AtomicCounter>(name, std::move(labels));
}

Gauge& PrometheusMetrics::NewGauge(std::string_view name, std::string_view help,
                                   MetricLabels labels) {
  const MonitorLock lock(*monitor_);
  return FamilyOf(name, help, Kind::kGauge).Get<AtomicGauge>(name, std::move(labels));
}

Histogram& PrometheusMetrics::NewHistogram(std::string_view name, std::string_view help,
                                           MetricLabels labels) {
  const MonitorLock lock(*monitor_);
  return FamilyOf(name, help, Kind::kHistogram).Get<AtomicHistogram>(name, std::move(labels));
}

PrometheusMetrics::Family& PrometheusMetrics::FamilyOf(std::string_view name, std::string_view help,
                                                       Kind kind) {
  auto found = families_.find(name);
  if (found == families_.end()) {
    CHECK_MSG(prometheus::CheckMetricName(std::string(name)), name);
    auto family = std::make_unique<Family>(Family{std::string(help), kind, {}});
    found = families_.emplace(std::string(name), std::move(family)).first;
  }
  CHECK_MSG(found->second->kind == kind && found->second->help == help, name);
  return *found->second;
}

std::string PrometheusMetrics::Render() const {
  constexpr std::array kTypes = {MetricType::Counter, MetricType::Gauge, MetricType::Histogram};
  std::vector<prometheus::MetricFamily> families;
  {
    const MonitorLock lock(*monitor_);
    for (const auto& [name, family] : families_) {
      prometheus::MetricFamily collected;
      collected.name = name;
      collected.help = family->help;
      collected.type = kTypes[static_cast<std::size_t>(family->kind)];
      for (const auto& [labels, series] : family->series) {
        ClientMetric metric;
        for (const auto& [label, value] : labels) metric.label.push_back({label, value});
        series->Collect(metric);
        collected.metric.push_back(std::move(metric));
      }
      families.push_back(std::move(collected));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace vmonce::app
