#include "daemon/telemetry/status_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace mets::telemetry {
namespace {

core::JobStatus Job(const std::string& name, uint32_t uid, Bytes resident) {
  core::JobStatus job;
  job.name = name;
  job.device = "host0";
  job.uid = uid;
  job.resident = resident;
  job.totals.evicted = MiB(1);
  return job;
}

const prometheus::MetricFamily& Find(
    const std::vector<prometheus::MetricFamily>& families,
    const std::string& name) {
  for (const auto& family : families) {
    if (family.name == name) return family;
  }
  ADD_FAILURE() << name;
  return families.front();
}

TEST(StatusMetricsTest, NamesAreUniqueAndCountersEndInTotal) {
  std::set<std::string> names;
  for (const auto& family : ToMetrics({}, {})) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    const bool total = family.name.size() > 6 &&
                       family.name.substr(family.name.size() - 6) == "_total";
    EXPECT_EQ(total, family.type == prometheus::MetricType::Counter)
        << family.name;
    EXPECT_FALSE(family.help.empty());
  }
}

TEST(StatusMetricsTest, JobsHaveDeviceAndJobLabels) {
  core::Status status;
  status.jobs = {Job("a", 1, MiB(2)), Job("b", 1, MiB(3))};
  const auto families = ToMetrics(status, {});
  const auto& resident = Find(families, "mets_job_resident_bytes");
  ASSERT_EQ(resident.metric.size(), 2u);
  EXPECT_EQ(resident.metric[1].gauge.value, MiB(3).count());
  ASSERT_EQ(resident.metric[1].label.size(), 2u);
  EXPECT_EQ(resident.metric[1].label[0].value, "host0");
  EXPECT_EQ(resident.metric[1].label[1].value, "b");
}

TEST(StatusMetricsTest, JobsOfOneNameInTwoDomainsAreAddedUp) {
  core::Status status;
  status.jobs = {Job("a", 1, MiB(2)), Job("a", 2, MiB(3))};
  const auto families = ToMetrics(status, {});
  const auto& resident = Find(families, "mets_job_resident_bytes");
  ASSERT_EQ(resident.metric.size(), 1u);
  EXPECT_EQ(resident.metric[0].gauge.value, MiB(5).count());
  const auto& evicted = Find(families, "mets_evicted_bytes_total");
  ASSERT_EQ(evicted.metric.size(), 1u);
  EXPECT_EQ(evicted.metric[0].counter.value, MiB(2).count());
}

TEST(StatusMetricsTest, OfJobsOfOneNameTheLargestSlowdownAndWaitCount) {
  core::Status status;
  status.jobs = {Job("a", 1, MiB(2)), Job("a", 2, MiB(3))};
  status.jobs[0].slowdown = 1.5;
  status.jobs[0].waiting_for = absl::Seconds(2);
  status.jobs[0].limit = MiB(8);
  status.jobs[0].wait_times.Add(absl::Milliseconds(5));
  status.jobs[1].slowdown = 3;
  status.jobs[1].gate_open = false;
  status.jobs[1].wait_times.Add(absl::Seconds(5));
  const auto families = ToMetrics(status, {});
  const auto value = [&](const char* name) {
    return Find(families, name).metric.at(0).gauge.value;
  };
  EXPECT_EQ(value("mets_job_slowdown"), 3);
  EXPECT_EQ(value("mets_waiting_seconds"), 2);
  EXPECT_EQ(value("mets_job_gate_open"), 0);
  // One of them has no limit.
  EXPECT_TRUE(Find(families, "mets_job_limit_bytes").metric.empty());
  const auto& waits = Find(families, "mets_wait_seconds").metric.at(0);
  EXPECT_EQ(waits.histogram.sample_count, 2u);
  EXPECT_DOUBLE_EQ(waits.histogram.sample_sum, 5.005);
}

TEST(StatusMetricsTest, WhatIsNotKnownHasNoSample) {
  core::Status status;
  status.jobs = {Job("a", 1, MiB(2))};
  const auto families = ToMetrics(status, {});
  for (const char* name :
       {"mets_job_slowdown", "mets_job_limit_bytes", "mets_job_guarantee_bytes",
        "mets_job_unresponsive_sessions", "mets_wait_seconds",
        "mets_failures_total"}) {
    EXPECT_TRUE(Find(families, name).metric.empty()) << name;
  }
  EXPECT_EQ(Find(families, "mets_steps_total").metric.size(), 1u);
}

TEST(StatusMetricsTest, BucketsAreCumulativeAndFailuresHaveReasons) {
  core::Status status;
  status.decisions.Add(absl::Microseconds(2));
  status.decisions.Add(absl::Microseconds(20));
  status.decisions.Add(absl::Seconds(1));
  status.jobs = {Job("a", 1, MiB(2))};
  status.jobs[0].failures[static_cast<size_t>(core::Failure::kSwapFull)] = 4;
  const auto families = ToMetrics(status, {});
  const auto& buckets =
      Find(families, "mets_decision_seconds").metric.at(0).histogram.bucket;
  ASSERT_EQ(buckets.size(), core::DecisionHistogram::kBuckets);
  EXPECT_EQ(buckets[1].cumulative_count, 1u);
  EXPECT_DOUBLE_EQ(buckets[1].upper_bound, 3e-6);
  EXPECT_EQ(buckets[3].cumulative_count, 2u);
  EXPECT_EQ(buckets.back().cumulative_count, 3u);
  const auto& failures = Find(families, "mets_failures_total").metric.at(0);
  EXPECT_EQ(failures.counter.value, 4);
  EXPECT_EQ(failures.label.back().value, "swap_full");
}

}  // namespace
}  // namespace mets::telemetry
