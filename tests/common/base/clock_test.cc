#include "common/base/clock.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace mets {
namespace {

TEST(RealClock, GoesForwardFromTheWallClock) {
  const absl::Time before = absl::Now();
  RealClock clock;
  const absl::Time first = clock.Now();
  const absl::Time second = clock.Now();
  EXPECT_LE(first, second);
  EXPECT_GE(first, before - absl::Minutes(1));
  EXPECT_LE(second, absl::Now() + absl::Minutes(1));
}

TEST(SimulatedClock, MovesOnlyWhenTold) {
  SimulatedClock clock(absl::UnixEpoch());
  EXPECT_EQ(clock.Now(), absl::UnixEpoch());
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now(), absl::UnixEpoch() + absl::Seconds(3));
  clock.AdvanceTo(absl::UnixEpoch() + absl::Seconds(2));
  EXPECT_EQ(clock.Now(), absl::UnixEpoch() + absl::Seconds(3));
  clock.AdvanceTo(absl::UnixEpoch() + absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::UnixEpoch() + absl::Seconds(5));
}

TEST(SimulatedClockDeathTest, DoesNotGoBack) {
  SimulatedClock clock;
  EXPECT_DEATH(clock.Advance(-absl::Seconds(1)), "step -1s");
}

}  // namespace
}  // namespace mets
