#include "daemon/core/costs/step_pace.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

// `count` steps of `ms` each, of which they waited `wait_ms` each.
StepPace::Steps Steps(int count, int ms, int wait_ms, bool alone) {
  StepPace::Steps steps;
  steps.count = count;
  steps.time = absl::Milliseconds(ms) * count;
  steps.wait = absl::Milliseconds(wait_ms) * count;
  steps.signature = 1;
  steps.alone = alone;
  return steps;
}

TEST(StepPaceTest, NothingIsKnownBeforeTheFirstStep) {
  StepPace pace;
  pace.Add(Steps(0, 0, 0, true));
  EXPECT_EQ(pace.slowdown(), 0);
  EXPECT_EQ(pace.uncontended(), absl::ZeroDuration());
}

TEST(StepPaceTest, StepsBesideOthersAreComparedWithThoseAlone) {
  StepPace pace;
  for (int i = 0; i < 3; ++i) pace.Add(Steps(10, 100, 0, true));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 1);
  // Slower although they wait for nothing: others use the bus and the cores.
  for (int i = 0; i < 10; ++i) pace.Add(Steps(5, 150, 0, false));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 1.5);
  for (int i = 0; i < 10; ++i) pace.Add(Steps(5, 300, 150, false));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 3);
  EXPECT_EQ(pace.uncontended(), absl::Milliseconds(100));
  EXPECT_EQ(pace.recent(), absl::Milliseconds(300));
}

TEST(StepPaceTest, WithoutAStepAloneWaitsAreTheSlowdown) {
  StepPace pace;
  for (int i = 0; i < 5; ++i) pace.Add(Steps(4, 250, 150, false));
  EXPECT_EQ(pace.uncontended(), absl::Milliseconds(100));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 2.5);
}

// A job that waits for its own copies (a limit that is too small) is slowed
// down also when it is alone.
TEST(StepPaceTest, WaitsAloneCount) {
  StepPace pace;
  for (int i = 0; i < 5; ++i) pace.Add(Steps(1, 400, 300, true));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 4);
}

TEST(StepPaceTest, APauseOfTheProgramIsNoSlowdown) {
  StepPace pace;
  for (int i = 0; i < 5; ++i) pace.Add(Steps(10, 100, 0, true));
  pace.Add(Steps(1, 3'600'000, 0, true));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 1);
}

TEST(StepPaceTest, AnotherStepIsComparedWithItsOwnKind) {
  StepPace pace;
  for (int i = 0; i < 5; ++i) pace.Add(Steps(10, 100, 0, true));
  StepPace::Steps other = Steps(10, 10, 0, false);
  other.signature = 2;
  pace.Add(other);
  EXPECT_EQ(pace.uncontended(), absl::Milliseconds(10));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 1);
}

TEST(StepPaceTest, AStepThatIsLostAndFoundAgainIsTheSame) {
  StepPace pace;
  for (int i = 0; i < 12; ++i) pace.Add(Steps(10, 100, 0, true));
  StepPace::Steps unknown = Steps(10, 200, 100, false);
  unknown.signature = 0;
  for (int i = 0; i < 6; ++i) pace.Add(unknown);
  for (int i = 0; i < 5; ++i) pace.Add(Steps(10, 200, 100, false));
  EXPECT_EQ(pace.uncontended(), absl::Milliseconds(100));
  EXPECT_DOUBLE_EQ(pace.slowdown(), 2);
}

}  // namespace
}  // namespace mets::core
