#include "daemon/sim/least_restored.h"

#include <gtest/gtest.h>

#include "tests/daemon/sim/training_program.h"

namespace mets::sim {
namespace {

using steps::AccessKind;

JobOp Use(uint32_t buffer, AccessKind kind) {
  JobOp op;
  op.accesses = {{buffer, kind}};
  return op;
}

// Buffers of 4 MiB each, made first and then read in this order.
JobProgram Reads(uint32_t buffers, std::vector<uint32_t> order) {
  JobProgram program;
  program.buffers.assign(buffers, MiB(4));
  for (uint32_t b = 0; b < buffers; ++b) {
    program.ops.push_back(Use(b, AccessKind::kNew));
  }
  for (uint32_t b : order) program.ops.push_back(Use(b, AccessKind::kRead));
  return program;
}

TEST(LeastRestoredTest, NothingComesBackWhereEverythingFits) {
  EXPECT_TRUE(LeastRestored(TrainingProgram(3, 1e-3), kTrainingPeak).is_zero());
}

TEST(LeastRestoredTest, WhatIsUsedNextStays) {
  EXPECT_EQ(LeastRestored(Reads(3, {0, 1, 2}), MiB(8)), MiB(4));
  EXPECT_EQ(LeastRestored(Reads(3, {2, 1, 0}), MiB(8)), MiB(4));
  EXPECT_EQ(LeastRestored(Reads(3, {0, 1, 2, 0, 1, 2}), MiB(8)), MiB(12));
}

TEST(LeastRestoredTest, PartsOfBuffersMayStay) {
  EXPECT_EQ(LeastRestored(Reads(2, {0, 1, 0}), MiB(7)), MiB(3));
}

TEST(LeastRestoredTest, WhatIsNotUsedAgainNeedNotStay) {
  EXPECT_TRUE(LeastRestored(Reads(3, {2}), MiB(4)).is_zero());
  EXPECT_EQ(LeastRestored(Reads(3, {0, 0}), MiB(4)), MiB(4));
}

TEST(LeastRestoredTest, SmallAllocationsAreAlwaysThere) {
  JobProgram program = Reads(2, {0, 1});
  EXPECT_TRUE(LeastRestored(program, MiB(8)).is_zero());
  program.small_peak = MiB(3);
  EXPECT_EQ(LeastRestored(program, MiB(8)), MiB(3) * 2);
}

TEST(LeastRestoredTest, EachStepOfATrainingBringsItsExcessBack) {
  EXPECT_EQ(LeastRestored(TrainingProgram(3, 1e-3), kTrainingPeak - MiB(10)),
            MiB(10) * 3);
}

}  // namespace
}  // namespace mets::sim
