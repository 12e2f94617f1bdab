#include "daemon/status_page/sampler.h"

#include <gtest/gtest.h>

#include <string>

namespace mets::status_page {
namespace {

core::JobStatus Job(const std::string& name, Bytes evicted, Bytes restored) {
  core::JobStatus job;
  job.name = name;
  job.device = "host0";
  job.domain = DomainId(1);
  job.totals.evicted = evicted;
  job.totals.restored = restored;
  return job;
}

core::Status With(std::vector<core::JobStatus> jobs) {
  core::Status status;
  core::DeviceStatus device;
  device.id = "host0";
  device.resident = MiB(7);
  device.swap_used = MiB(3);
  status.devices.push_back(device);
  status.jobs = std::move(jobs);
  return status;
}

TEST(SamplerTest, TrafficIsTheSumOfWhatJobsMoved) {
  const core::Status before = With({Job("a", MiB(1), MiB(1))});
  const core::Status now =
      With({Job("a", MiB(5), MiB(1)), Job("b", MiB(2), Bytes())});
  const DevicePoint point = PointOf(before, now, 0, absl::Seconds(2));
  EXPECT_EQ(point.resident, MiB(7));
  EXPECT_EQ(point.swapped, MiB(3));
  EXPECT_EQ(point.evicted_per_second, 3.0 * (1 << 20));
  EXPECT_EQ(point.restored_per_second, 0);
}

TEST(SamplerTest, AJobThatIsGoneMovesNothingBack) {
  const core::Status before = With({Job("a", MiB(9), MiB(9))});
  const DevicePoint point = PointOf(before, With({}), 0, absl::Seconds(1));
  EXPECT_EQ(point.evicted_per_second, 0);
  EXPECT_EQ(point.restored_per_second, 0);
}

}  // namespace
}  // namespace mets::status_page
