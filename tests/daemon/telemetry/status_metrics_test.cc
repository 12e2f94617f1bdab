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
  for (const auto& family : ToMetrics({})) {
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
  const auto families = ToMetrics(status);
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
  const auto families = ToMetrics(status);
  const auto& resident = Find(families, "mets_job_resident_bytes");
  ASSERT_EQ(resident.metric.size(), 1u);
  EXPECT_EQ(resident.metric[0].gauge.value, MiB(5).count());
  const auto& evicted = Find(families, "mets_evicted_bytes_total");
  ASSERT_EQ(evicted.metric.size(), 1u);
  EXPECT_EQ(evicted.metric[0].counter.value, MiB(2).count());
}

}  // namespace
}  // namespace mets::telemetry
