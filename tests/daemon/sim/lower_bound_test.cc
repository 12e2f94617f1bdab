#include "daemon/sim/lower_bound.h"

#include <gtest/gtest.h>

#include "tests/daemon/sim/training_program.h"

namespace mets::sim {
namespace {

TEST(LowerBoundTest, EachStepsHumpCountsOnceOutAndOnceIn) {
  const JobProgram program = TrainingProgram(3, 1e-3);
  EXPECT_TRUE(LeastMoved(program, kTrainingPeak).is_zero());
  EXPECT_EQ(LeastMoved(program, kTrainingPeak - MiB(10)), MiB(10) * (3 * 2));
}

TEST(LowerBoundTest, WhatIsAwayAtTheEndDoesNotComeBack) {
  JobProgram program = TrainingProgram(1, 1e-3);
  program.ops.resize(kLayers);
  EXPECT_EQ(LeastMoved(program, kTrainingPeak - MiB(10)), MiB(10));
}

TEST(LowerBoundTest, SmallAllocationsAreAlwaysThere) {
  JobProgram program = TrainingProgram(1, 1e-3);
  program.small_peak = MiB(3);
  EXPECT_EQ(LeastMoved(program, kTrainingPeak), MiB(6));
}

}  // namespace
}  // namespace mets::sim
