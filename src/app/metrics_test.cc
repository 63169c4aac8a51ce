#include "app/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/system.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class MetricsTest : public testing::Test {
 protected:
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  PrometheusMetrics metrics_{*threads_};
};

TEST_F(MetricsTest, NothingCountedIsAnEmptyPage) { EXPECT_EQ(metrics_.Render(), ""); }

TEST_F(MetricsTest, CountersAndGaugesStandWithHelpTypeAndLabels) {
  metrics_.NewCounter("requests_total", "Requests.", {{"outcome", "new"}}).Add(2);
  metrics_.NewCounter("requests_total", "Requests.", {{"outcome", "known"}}).Add(1);
  metrics_.NewGauge("age_seconds", "Age.", {}).Set(2.5);
  EXPECT_EQ(metrics_.Render(),
            "# HELP age_seconds Age.\n"
            "# TYPE age_seconds gauge\n"
            "age_seconds 2.5\n"
            "# HELP requests_total Requests.\n"
            "# TYPE requests_total counter\n"
            "requests_total{outcome=\"known\"} 1\n"
            "requests_total{outcome=\"new\"} 2\n");
}

TEST_F(MetricsTest, ANewSeriesStandsAtZero) {
  metrics_.NewCounter("c_total", "C.", {});
  EXPECT_THAT(metrics_.Render(), HasSubstr("\nc_total 0\n"));
}

TEST_F(MetricsTest, TheSameNameAndLabelsAreTheSameObject) {
  Counter& first = metrics_.NewCounter("c_total", "C.", {{"a", "1"}, {"b", "2"}});
  Counter& again = metrics_.NewCounter("c_total", "C.", {{"b", "2"}, {"a", "1"}});
  Counter& other = metrics_.NewCounter("c_total", "C.", {{"b", "1"}, {"a", "2"}});
  EXPECT_EQ(&first, &again);
  EXPECT_NE(&first, &other);
}

TEST_F(MetricsTest, LabelValuesAreEscaped) {
  metrics_.NewGauge("g", "G.", {{"a", "x\"y\\z\nw"}}).Set(1);
  EXPECT_THAT(metrics_.Render(), HasSubstr(R"(g{a="x\"y\\z\nw"} 1)"));
}

TEST_F(MetricsTest, AHistogramCountsEachBoundInclusively) {
  Histogram& histogram = metrics_.NewHistogram("h_seconds", "H.", {{"step", "disk"}});
  histogram.Observe(0.001);
  histogram.Observe(0.002);
  histogram.Observe(1000);
  const std::string page = metrics_.Render();
  EXPECT_THAT(page, HasSubstr("h_seconds_bucket{step=\"disk\",le=\"0.0005\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_bucket{step=\"disk\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_bucket{step=\"disk\",le=\"0.0025\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_bucket{step=\"disk\",le=\"600\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_bucket{step=\"disk\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_count{step=\"disk\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_sum{step=\"disk\"} 1000.003"));
}

TEST_F(MetricsTest, WhatIsNoDurationCountsAsNothing) {
  Histogram& histogram = metrics_.NewHistogram("h_seconds", "H.", {});
  histogram.Observe(-1);
  histogram.Observe(std::nan(""));
  EXPECT_THAT(metrics_.Render(), HasSubstr("h_seconds_bucket{le=\"0.0005\"} 2\n"));
  EXPECT_THAT(metrics_.Render(), HasSubstr("h_seconds_sum 0\n"));
}

TEST_F(MetricsTest, SeriesBeyondTheBoundShareOne) {
  for (std::size_t i = 0; i < model::limits::kMetricSeries + 10; ++i) {
    metrics_.NewCounter("c_total", "C.", {{"route", std::to_string(i)}}).Add(1);
  }
  EXPECT_THAT(metrics_.Render(), HasSubstr("c_total{route=\"other\"} 10\n"));
  // Those that were there keep counting for themselves.
  metrics_.NewCounter("c_total", "C.", {{"route", "0"}}).Add(1);
  EXPECT_THAT(metrics_.Render(), HasSubstr("c_total{route=\"0\"} 2\n"));
}

TEST_F(MetricsTest, CountsNothingTwiceAndLosesNothingAcrossThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5'000;
  std::vector<std::unique_ptr<Thread>> running;
  for (int i = 0; i < kThreads; ++i) {
    running.push_back(threads_->Spawn("count", [this](std::stop_token) {
      for (int round = 0; round < kRounds; ++round) {
        metrics_.NewCounter("c_total", "C.", {{"a", std::to_string(round % 3)}}).Add(1);
        metrics_.NewHistogram("h_seconds", "H.", {}).Observe(0.25);
      }
    }));
  }
  EXPECT_THAT(metrics_.Render(), Not(HasSubstr("nan")));
  for (const auto& thread : running) thread->Join();
  const std::string page = metrics_.Render();
  EXPECT_THAT(page, HasSubstr("c_total{a=\"0\"} 6668\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_count 20000\n"));
  EXPECT_THAT(page, HasSubstr("h_seconds_sum 5000\n"));
}

using MetricsDeathTest = MetricsTest;

TEST_F(MetricsDeathTest, WrongNamesAndMixedKindsAreBugs) {
  metrics_.NewCounter("c_total", "C.", {{"a", "1"}});
  EXPECT_DEATH(metrics_.NewGauge("c_total", "C.", {{"a", "1"}}), "c_total");
  EXPECT_DEATH(metrics_.NewCounter("c_total", "Other.", {{"a", "1"}}), "c_total");
  EXPECT_DEATH(metrics_.NewCounter("c_total", "C.", {{"b", "1"}}), "c_total");
  EXPECT_DEATH(metrics_.NewCounter("c total", "C.", {}), "c total");
  EXPECT_DEATH(metrics_.NewCounter("d_total", "D.", {{"a b", "1"}}), "a b");
  EXPECT_DEATH(metrics_.NewCounter("d_total", "D.", {{"le", "1"}}), "le");
}

}  // namespace
}  // namespace vmonce::app
