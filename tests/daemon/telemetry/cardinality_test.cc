// How many samples a scrape has when jobs come and go.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/core/core.h"
#include "daemon/policy/registry.h"
#include "daemon/telemetry/status_metrics.h"

namespace mets::telemetry {
namespace {

// Jobs that come and go in simulated time.
class CardinalityTest : public ::testing::Test {
 protected:
  static core::CoreConfig Config() {
    core::CoreConfig config;
    config.devices.resize(1);
    config.devices[0].id = DeviceId(1);
    config.devices[0].name = "host0";
    config.devices[0].pool = MiB(64);
    config.devices[0].chunk_classes = {MiB(1)};
    return config;
  }

  // A job that lives for a moment and leaves counters behind.
  void RunJob(uint64_t number) {
    core::SessionOpened opened;
    opened.session = SessionId(number);
    opened.domain = DomainId(1);
    opened.job = absl::StrCat("job-", number);
    core_.Step(now_, opened);
    core_.Step(now_, core::AttachDevice{opened.session, "host0"});
    core::BufferChanges changes;
    changes.session = opened.session;
    changes.totals.evictions = 1;
    core_.Step(now_, changes);
    core_.Step(now_, core::SessionEnded{opened.session});
  }

  void Pass(absl::Duration time) {
    now_ += time;
    core_.Step(now_, core::Tick{});
  }

  size_t Samples() const {
    size_t samples = 0;
    for (const auto& family : ToMetrics(core_.GetStatus(), {})) {
      samples += family.metric.size();
    }
    return samples;
  }

  core::Core core_{Config(), *policy::MakePolicy("lru")};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

// Three jobs a second: what a minute's jobs leave is shown, and no more,
// however many there have been.
TEST_F(CardinalityTest, TenThousandJobsLeaveNoMoreThanAMinutesBehind) {
  const size_t empty = Samples();
  size_t early = 0;
  size_t most = 0;
  for (int i = 1; i <= 10000; ++i) {
    RunJob(i);
    Pass(absl::Seconds(1) / 3);
    if (i == 200) early = Samples();  // The first minute is over.
    if (i % 50 == 0) most = std::max(most, Samples());
  }
  EXPECT_GT(early, empty + 180 * 10);
  EXPECT_LE(most, early + 50);
  Pass(absl::Minutes(2));
  EXPECT_EQ(Samples(), empty);
}

// As fast as they can.
TEST_F(CardinalityTest, TenThousandJobsAtOnceLeaveABoundedNumberBehind) {
  const size_t empty = Samples();
  RunJob(1);
  const size_t each = Samples() - empty;
  for (int i = 2; i <= 10000; ++i) RunJob(i);
  EXPECT_LE(Samples(), empty + 256 * each);
}

}  // namespace
}  // namespace mets::telemetry
