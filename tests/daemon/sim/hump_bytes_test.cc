#include "daemon/sim/hump_bytes.h"

#include <gtest/gtest.h>

#include "tests/daemon/sim/training_program.h"

namespace mets::sim {
namespace {

TEST(HumpBytesTest, EachStepsHumpCountsOnceOutAndOnceIn) {
  const JobProgram program = TrainingProgram(3, 1e-3);
  EXPECT_TRUE(HumpBytes(program, kTrainingPeak).is_zero());
  EXPECT_EQ(HumpBytes(program, kTrainingPeak - MiB(10)), MiB(10) * (3 * 2));
}

TEST(HumpBytesTest, WhatIsAwayAtTheEndDoesNotComeBack) {
  JobProgram program = TrainingProgram(1, 1e-3);
  program.ops.resize(kLayers);
  EXPECT_EQ(HumpBytes(program, kTrainingPeak - MiB(10)), MiB(10));
}

TEST(HumpBytesTest, SmallAllocationsAreAlwaysThere) {
  JobProgram program = TrainingProgram(1, 1e-3);
  program.small_peak = MiB(3);
  EXPECT_EQ(HumpBytes(program, kTrainingPeak), MiB(6));
}

}  // namespace
}  // namespace mets::sim
