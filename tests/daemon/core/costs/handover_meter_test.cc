#include "daemon/core/costs/handover_meter.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

absl::Time At(int ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

TEST(HandoverMeterTest, EvictionsAtTheSameTimeCountOnce) {
  HandoverMeter meter;
  meter.Begin(At(100));
  meter.Begin(At(110));
  meter.AddBytes(MiB(2));
  meter.End(At(130));
  EXPECT_EQ(meter.time(At(135)), absl::Milliseconds(35));
  meter.AddBytes(MiB(1));
  meter.End(At(140));
  EXPECT_EQ(meter.time(At(1000)), absl::Milliseconds(40));
  EXPECT_EQ(meter.bytes(), MiB(3));
  meter.Begin(At(2000));
  EXPECT_EQ(meter.time(At(2005)), absl::Milliseconds(45));
}

}  // namespace
}  // namespace mets::core
