#include "common/steps/step_meter.h"

#include <gtest/gtest.h>

namespace mets::steps {
namespace {

absl::Time At(int ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

TEST(StepMeterTest, TellsWhatAStepNeededAndThenOnlyChanges) {
  StepMeter meter;
  EXPECT_FALSE(meter.StepEnds(At(0), MiB(10), {}).has_value());
  meter.NoteLive(MiB(100));
  meter.NoteLive(MiB(50));
  const auto need = meter.StepEnds(At(100), MiB(10), absl::Milliseconds(40));
  ASSERT_TRUE(need.has_value());
  EXPECT_EQ(need->peak, MiB(100));
  EXPECT_EQ(need->persistent, MiB(10));
  EXPECT_EQ(need->step, absl::Milliseconds(60));
  meter.NoteLive(MiB(103));
  EXPECT_FALSE(
      meter.StepEnds(At(165), MiB(12), absl::Milliseconds(40)).has_value());
  meter.NoteLive(MiB(120));
  EXPECT_TRUE(
      meter.StepEnds(At(230), MiB(12), absl::Milliseconds(40)).has_value());
  meter.NoteLive(MiB(120));
  meter.Forget();
  EXPECT_TRUE(
      meter.StepEnds(At(290), MiB(12), absl::Milliseconds(40)).has_value());
}

// Their times differ by chance, and a message for each would be a flood.
TEST(StepMeterTest, ManyShortStepsAreToldTenTimesASecond) {
  StepMeter meter;
  int told = 0;
  absl::Time now = At(0);
  for (int i = 0; i < 1000; ++i) {
    now += absl::Milliseconds(i % 2 == 0 ? 0.5 : 1.5);
    told += meter.StepEnds(now, MiB(10), {}).has_value();
  }
  EXPECT_GE(told, 9);
  EXPECT_LE(told, 11);
  // A need that has grown is told at once.
  meter.NoteLive(MiB(100));
  EXPECT_TRUE(
      meter.StepEnds(now + absl::Milliseconds(1), MiB(10), {}).has_value());
}

// What cannot be stopped within a step must not begin one that does not fit.
TEST(StepMeterTest, ACautiousOneTellsTheHighestPeakOnceTwoStepsAgree) {
  StepMeter meter(/*cautious=*/true);
  EXPECT_FALSE(meter.StepEnds(At(0), MiB(10), {}).has_value());
  meter.NoteLive(MiB(20));  // It builds its model.
  EXPECT_FALSE(meter.StepEnds(At(1000), MiB(20), {}).has_value());
  meter.NoteLive(MiB(100));
  EXPECT_FALSE(meter.StepEnds(At(2000), MiB(20), {}).has_value());
  meter.NoteLive(MiB(99));
  auto need = meter.StepEnds(At(3000), MiB(20), {});
  ASSERT_TRUE(need.has_value());
  EXPECT_EQ(need->peak, MiB(100));
  EXPECT_EQ(need->persistent, MiB(20));
  meter.NoteLive(MiB(30));  // An evaluation; the next step is as before.
  need = meter.StepEnds(At(4000), MiB(20), {});
  EXPECT_EQ(need.has_value() ? need->peak : MiB(100), MiB(100));
  meter.NoteLive(MiB(130));
  need = meter.StepEnds(At(5000), MiB(20), {});
  ASSERT_TRUE(need.has_value());
  EXPECT_EQ(need->peak, MiB(130));
}

}  // namespace
}  // namespace mets::steps
