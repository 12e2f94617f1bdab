// What a scrape costs.
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <time.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/telemetry/status_metrics.h"

namespace mets::telemetry {
namespace {

core::JobStatus BusyJob(int number, const std::string& device) {
  core::JobStatus job;
  job.name = absl::StrCat("training-", number);
  job.device = device;
  job.sessions = 2;
  job.resident = GiB(7) + MiB(number);
  job.swapped = GiB(3) + MiB(number);
  job.cached = MiB(300 + number);
  job.pinned = MiB(123 + number);
  job.limit = GiB(20);
  job.guarantee = GiB(2);
  job.slowdown = 1.23456789 + number;
  job.uncontended_step = absl::Microseconds(123456);
  job.waiting_for = absl::Milliseconds(1234);
  job.totals.evicted = GiB(1234) + Bytes(number);
  job.totals.restored = GiB(1200) + Bytes(number);
  job.totals.evictions = 123456;
  job.totals.clean_evictions = 12345;
  job.totals.restores = 123450;
  job.totals.restore_stall = absl::Microseconds(987654321);
  job.totals.steps = 1234567;
  job.totals.step_time = absl::Microseconds(98765432109);
  job.totals.step_wait = absl::Microseconds(8765432109);
  for (int ms : {1, 7, 70, 700, 7000, 70000}) {
    for (int i = 0; i < 1000; ++i) job.wait_times.Add(absl::Milliseconds(ms));
  }
  job.turns_total = 12345;
  job.gate_wait_total = absl::Microseconds(1234567891);
  job.failures[0] = 3;
  return job;
}

// 64 jobs, each on all of 4 devices.
core::Status BusyNode() {
  core::Status status;
  for (int d = 0; d < 4; ++d) {
    core::DeviceStatus device;
    device.id = absl::StrCat("host", d);
    status.devices.push_back(device);
    for (int j = 0; j < 64; ++j) status.jobs.push_back(BusyJob(j, device.id));
  }
  return status;
}

// Of this thread: what else runs on the machine does not count.
double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) / 1e9;
}

TEST(ScrapeTest, SixtyFourJobsOnFourDevicesCostNoMoreThanTheyMay) {
  const core::Status status = BusyNode();
  double best = 1;
  std::string page;
  for (int i = 0; i < 20; ++i) {
    const double begin = CpuSeconds();
    page = prometheus::TextSerializer().Serialize(ToMetrics(status, {}));
    best = std::min(best, CpuSeconds() - begin);
  }
  RecordProperty("milliseconds", absl::StrCat(best * 1e3));
  RecordProperty("bytes", static_cast<int>(page.size()));
  EXPECT_LE(best, 0.020);
  EXPECT_LE(page.size(), size_t{512} << 10);
}

}  // namespace
}  // namespace mets::telemetry
