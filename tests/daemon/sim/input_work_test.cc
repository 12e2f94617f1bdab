#include "daemon/sim/input_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/policy/registry.h"
#include "daemon/sim/simulation.h"
#include "tests/daemon/sim/training_program.h"

namespace mets::sim {
namespace {

using ::testing::HasSubstr;

constexpr size_t kOpsInStep = 2 * kLayers;

TEST(InputWorkTest, ComesBeforeEachStepAndTakesItsShareOfTheTime) {
  constexpr int kSteps = 5;
  JobProgram program = TrainingProgram(kSteps, 1e-3);
  const double before = program.seconds;
  ASSERT_TRUE(AddInputWork(0.6, &program).ok());
  EXPECT_NEAR(program.seconds, before / 0.4, 1e-9);
  EXPECT_NEAR(program.input_seconds, 0.6 * program.seconds, 1e-9);
  for (size_t op = 0; op < program.ops.size(); ++op) {
    // Its own first step makes the weights.
    const bool begins = op % kOpsInStep == (op < kOpsInStep ? 1 : 0);
    EXPECT_NEAR(program.ops[op].gap,
                begins ? program.input_seconds / kSteps : 0, 1e-9)
        << op;
  }
}

TEST(InputWorkTest, NoneLeavesTheProgramAsItIs) {
  JobProgram program = TrainingProgram(2, 1e-3);
  ASSERT_TRUE(AddInputWork(0, &program).ok());
  EXPECT_EQ(program.seconds, TrainingProgram(2, 1e-3).seconds);
  EXPECT_EQ(program.input_seconds, 0);
}

TEST(InputWorkTest, AProgramWithoutAStepIsRefusedByName) {
  JobProgram program;
  program.name = "single";
  program.buffers = {MiB(1)};
  program.ops.resize(1);
  program.ops[0].busy = program.seconds = 1;
  program.ops[0].accesses = {{0, steps::AccessKind::kNew}};
  const absl::Status status = AddInputWork(0.5, &program);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'single'"));
  EXPECT_EQ(program.seconds, 1);
}

// What fits one after the other, and does not fit together.
TEST(InputWorkTest, HalfIdleJobsComputeWhileTheOtherPreparesItsInput) {
  JobProgram program = TrainingProgram(300, 2e-3);
  ASSERT_TRUE(AddInputWork(0.5, &program).ok());
  SimOptions options;
  options.device_memory = Bytes(kTrainingPeak.count() * 140 / 100);
  options.policy = [] { return *policy::MakePolicy("lru"); };
  const auto result = Simulate({{&program}, {&program}}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(result->seconds, 0.6 * 2 * program.seconds);
}

}  // namespace
}  // namespace mets::sim
