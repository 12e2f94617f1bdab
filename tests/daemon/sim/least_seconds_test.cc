#include "daemon/sim/least_seconds.h"

#include <gtest/gtest.h>

#include "daemon/sim/least_restored.h"
#include "tests/daemon/sim/training_program.h"

namespace mets::sim {
namespace {

using steps::AccessKind;

constexpr double kSpeed = 1 << 20;  // Bytes a second.

JobOp Use(std::vector<uint32_t> buffers, double busy,
          AccessKind kind = AccessKind::kRead) {
  JobOp op;
  op.busy = busy;
  for (uint32_t b : buffers) op.accesses.push_back({b, kind});
  return op;
}

// Buffers of 4 MiB each, each made by an op of a second.
JobProgram Made(uint32_t buffers) {
  JobProgram program;
  program.buffers.assign(buffers, MiB(4));
  for (uint32_t b = 0; b < buffers; ++b) {
    program.ops.push_back(Use({b}, 1, AccessKind::kNew));
  }
  return program;
}

TEST(LeastSecondsTest, OpsTakeTheirTimeWhereEverythingFits) {
  JobProgram program = Made(3);
  program.ops.push_back(Use({0, 1, 2}, 5));
  program.ops.back().gap = 2;
  EXPECT_EQ(LeastSeconds(program, MiB(12), kSpeed), 3 + 2 + 5);
}

TEST(LeastSecondsTest, WhatIsUsedAtOnceHasToComeBackBetween) {
  JobProgram program = Made(3);
  program.ops.push_back(Use({0}, 1));
  program.ops.push_back(Use({1}, 1));
  program.ops.push_back(Use({2}, 1));
  // When the third op begins, 4 of 12 MiB are away. They come back in 4 s,
  // beside two ops, before the fifth begins.
  EXPECT_DOUBLE_EQ(LeastSeconds(program, MiB(8), kSpeed), 6 + 2);
  // Half of them.
  EXPECT_DOUBLE_EQ(LeastSeconds(program, MiB(10), kSpeed), 6);
  EXPECT_DOUBLE_EQ(LeastSeconds(program, MiB(8), kSpeed / 2), 6 + 6);
}

TEST(LeastSecondsTest, StretchesBehindOneAnotherAddUp) {
  JobProgram program = Made(3);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t b : {0, 1, 2}) program.ops.push_back(Use({b}, 1));
    program.ops.push_back(Use({2}, 10));
  }
  // In the second round too something is away when its first op runs.
  EXPECT_DOUBLE_EQ(LeastSeconds(program, MiB(8), kSpeed), 3 + 26 + 2 + 2);
}

TEST(LeastSecondsTest, IsNoLessThanTheBusTimeOfWhatComesBack) {
  const JobProgram program = TrainingProgram(3, 1e-3);
  const Bytes memory = kTrainingPeak - MiB(10);
  const double speed = 1e9;
  EXPECT_GE(
      LeastSeconds(program, memory, speed),
      static_cast<double>(LeastRestored(program, memory).count()) / speed);
}

}  // namespace
}  // namespace mets::sim
