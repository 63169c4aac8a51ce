// The door to metrics: counters, gauges and histograms with Prometheus' meaning. Who counts
// something takes a Metrics& and keeps the references that it gives out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vmonce {

// Name and value. Values come from small closed sets: never an id, a key, a name, a path.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// The three below are thread-safe and lock-free.

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Add(std::uint64_t n) = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  // Less than nothing counts as nothing.
  virtual void Observe(double seconds) = 0;
};

// Thread-safe. References live as long as it does. The same name and labels (in any order) give the
// same object; other labels another series of the name. A name's kind, help and label names are the
// same at every call, and names follow Prometheus' grammar (both CHECKed). Takes a lock: a hot path
// keeps the reference. A name has a bounded number of series; labels beyond it share one whose
// values are all "other".
class Metrics {
 public:
  virtual ~Metrics() = default;
  virtual Counter& NewCounter(std::string_view name, std::string_view help,
                              MetricLabels labels) = 0;
  virtual Gauge& NewGauge(std::string_view name, std::string_view help, MetricLabels labels) = 0;
  // Of durations in seconds, from half a millisecond to ten minutes.
  virtual Histogram& NewHistogram(std::string_view name, std::string_view help,
                                  MetricLabels labels) = 0;
};

}  // namespace vmonce
