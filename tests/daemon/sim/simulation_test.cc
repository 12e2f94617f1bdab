#include "daemon/sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/policy/registry.h"
#include "daemon/sim/hump_bytes.h"
#include "daemon/sim/sim_report.h"
#include "tests/daemon/sim/training_program.h"

namespace mets::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Bytes OfPeak(int64_t percent) {
  return Bytes(kTrainingPeak.count() * percent / 100);
}

SimOptions OptionsWith(Bytes memory) {
  SimOptions options;
  options.device_memory = memory;
  options.policy = [] { return *policy::MakePolicy("lru"); };
  return options;
}

double Seconds(const JobResult& result) {
  return result.ended - result.started;
}

TEST(SimulationTest, WhatFitsTakesItsTimeAndMovesNothing) {
  const JobProgram program = TrainingProgram(20, 1e-3);
  const auto result = Simulate({{&program}}, OptionsWith(OfPeak(200)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->seconds, program.seconds, 0.02 * program.seconds);
  EXPECT_TRUE(result->jobs[0].evicted.is_zero());
  EXPECT_TRUE(result->jobs[0].restored.is_zero());
}

TEST(SimulationTest, OnASmallerDeviceBytesMoveAndOpsWaitForThem) {
  const JobProgram program = TrainingProgram(20, 1e-3);
  SimOptions options = OptionsWith(OfPeak(60));
  options.plans = false;
  const auto result = Simulate({{&program}}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  const JobResult& job = result->jobs[0];
  // Activations are written once, so what leaves them at all leaves as a copy.
  const Bytes least = HumpBytes(program, options.device_memory);
  EXPECT_GE(job.evicted + job.restored, least);
  EXPECT_LE(job.peak, options.device_memory);
  EXPECT_NEAR(Seconds(job), program.seconds + job.stall, 1e-6);
  EXPECT_GT(job.stall, static_cast<double>(job.restored.count()) /
                           options.costs.bus_bytes_per_second);
}

TEST(SimulationTest, APlannedStepHardlyWaitsForItsCopies) {
  const JobProgram program = TrainingProgram(100, 1e-3);
  SimOptions options = OptionsWith(OfPeak(60));
  const auto planned = Simulate({{&program}}, options);
  options.plans = false;
  const auto unplanned = Simulate({{&program}}, options);
  ASSERT_TRUE(planned.ok() && unplanned.ok());
  EXPECT_LT(planned->jobs[0].stall, unplanned->jobs[0].stall / 4);
  EXPECT_LE(planned->jobs[0].peak, options.device_memory);
  EXPECT_LT(planned->jobs[0].requests, unplanned->jobs[0].requests / 4);
}

TEST(SimulationTest, AFasterBusMakesShorterStalls) {
  const JobProgram program = TrainingProgram(20, 1e-3);
  SimOptions options = OptionsWith(OfPeak(60));
  options.costs.bus_bytes_per_second = 1e9;
  const auto slow = Simulate({{&program}}, options);
  options.costs.bus_bytes_per_second *= 4;
  const auto fast = Simulate({{&program}}, options);
  ASSERT_TRUE(slow.ok() && fast.ok());
  EXPECT_LT(fast->jobs[0].stall, slow->jobs[0].stall / 2);
}

TEST(SimulationTest, TwoMovesAtOnceHideTheMapping) {
  const JobProgram program = TrainingProgram(100, 1e-3);
  SimOptions options = OptionsWith(OfPeak(60));
  options.costs.map = 2e-3;
  options.costs.moves = 1;
  const auto one = Simulate({{&program}}, options);
  options.costs.moves = 2;
  const auto two = Simulate({{&program}}, options);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_LT(two->jobs[0].stall, one->jobs[0].stall * 0.8);
}

TEST(SimulationTest, TheSameOptionsGiveTheSameResult) {
  const JobProgram program = TrainingProgram(10, 1e-3);
  const std::vector<SimJob> jobs = {{&program}, {&program, 0.05}};
  const auto first = Simulate(jobs, OptionsWith(OfPeak(110)));
  const auto second = Simulate(jobs, OptionsWith(OfPeak(110)));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->seconds, second->seconds);
  EXPECT_EQ(first->jobs[1].evicted, second->jobs[1].evicted);
}

TEST(SimulationTest, TwoTrainingsTakeTurnsAndMoveLittle) {
  const JobProgram program = TrainingProgram(300, 2e-3);
  const std::vector<SimJob> jobs = {{&program}, {&program}};
  const SimOptions options = OptionsWith(OfPeak(140));
  const auto alone = Simulate({{&program}}, options);
  const auto result = Simulate(jobs, options);
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(result->seconds, 1.05 * 2 * alone->seconds);
  EXPECT_GT(result->jobs[0].gate + result->jobs[1].gate, program.seconds / 2);
  // Before the steps are known.
  EXPECT_LT(result->jobs[0].evicted, kActivations * 50);
  std::vector<JobReport> reports(2);
  for (size_t i = 0; i < 2; ++i) {
    reports[i].ideal = program.seconds;
    reports[i].result = result->jobs[i];
  }
  EXPECT_GE(Fairness(reports), 0.95);
}

// An op of one leaves no room for an op of the other, and each op needs other
// buffers than the one before.
TEST(SimulationTest, JobsWhoseOpsFillTheDeviceDoNotStopEachOther) {
  using steps::AccessKind;
  constexpr uint32_t kBuffers = 20, kUsed = 10;
  JobProgram program;
  program.name = "wide";
  program.buffers.assign(kBuffers, MiB(8));
  program.peak = MiB(8) * int64_t{kBuffers};
  for (uint32_t i = 0; i < 40; ++i) {
    JobOp op;
    op.busy = 1e-4;
    for (uint32_t b = 0; b < kUsed; ++b) {
      op.accesses.push_back(
          {i < 2 ? i * kUsed + b : (i * i * 7 + b * 3) % kBuffers,
           i < 2 ? AccessKind::kNew : AccessKind::kWrite});
    }
    program.ops.push_back(op);
    program.seconds += op.busy;
  }
  const auto result = Simulate({{&program}, {&program}, {&program}},
                               OptionsWith(MiB(8) * int64_t{kUsed + 1}));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const JobResult& job : result->jobs) EXPECT_TRUE(job.done);
}

TEST(SimulationTest, TheHigherPriorityIsHardlySlowedDown) {
  const JobProgram program = TrainingProgram(300, 2e-3);
  const std::vector<SimJob> jobs = {{&program}, {&program, 0, 5}};
  const auto result = Simulate(jobs, OptionsWith(OfPeak(140)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(Seconds(result->jobs[1]), 1.1 * program.seconds);
  EXPECT_GT(Seconds(result->jobs[0]), 1.8 * program.seconds);
}

// The lower one swaps in its limit, beside the higher one's ops.
TEST(SimulationTest, CopiesForALowerPriorityCostTheHigherOneItsBoundAtMost) {
  const JobProgram high = TrainingProgram(100, 1e-3);
  const JobProgram low = TrainingProgram(40, 1e-3);
  const std::vector<SimJob> jobs = {{&high, 0, 5}, {&low, 0, 0, 1, OfPeak(60)}};
  SimOptions options = OptionsWith(OfPeak(250));
  options.plans = false;
  const auto lost = [](const JobResult& job) {
    return job.slowed / Seconds(job);
  };
  options.interference_bound = 1;
  const auto free = Simulate(jobs, options);
  options.interference_bound = 1e-3;
  const auto paced = Simulate(jobs, options);
  ASSERT_TRUE(free.ok() && paced.ok());
  EXPECT_GT(lost(free->jobs[0]), 1.5e-3);
  EXPECT_LE(lost(paced->jobs[0]), 1.02e-3);
  EXPECT_GT(lost(paced->jobs[0]), 0.5e-3);
  EXPECT_EQ(paced->jobs[0].wait, free->jobs[0].wait);
  EXPECT_TRUE(paced->jobs[1].done);
}

// Each op uses the whole of the job's memory, the next begins at once, and no
// step is known.
TEST(SimulationTest, WhoNeverLetsGoOfItsMemorySharesItAllTheSame) {
  using steps::AccessKind;
  JobProgram program;
  program.name = "busy";
  program.buffers = {MiB(8)};
  program.peak = MiB(8);
  for (int i = 0; i < 120'000; ++i) {
    JobOp op;
    op.busy = 1e-3;
    op.accesses = {{0, i == 0 ? AccessKind::kNew : AccessKind::kRead}};
    program.ops.push_back(op);
    program.seconds += op.busy;
  }
  const auto result =
      Simulate({{&program}, {&program, 3}}, OptionsWith(MiB(10)));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const JobResult& job : result->jobs) {
    EXPECT_GT(Seconds(job), 1.7 * program.seconds);
    EXPECT_LT(job.wait, 30);
  }
}

TEST(SimulationTest, AnOpLargerThanTheDeviceIsSaidWithTheJob) {
  const JobProgram program = TrainingProgram(2, 1e-3);
  const auto result = Simulate({{&program}}, OptionsWith(MiB(20)));
  EXPECT_TRUE(absl::IsResourceExhausted(result.status()));
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("'training'"), HasSubstr("20 MiB")));
}

TEST(SimulationTest, SmallAllocationsTakeTheirPartOfTheDevice) {
  JobProgram program = TrainingProgram(2, 1e-3);
  program.small_peak = MiB(50);
  const auto result = Simulate({{&program}}, OptionsWith(MiB(40)));
  EXPECT_TRUE(absl::IsResourceExhausted(result.status()));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("50 MiB"));
}

TEST(SimulationTest, ResidencyIsSampledAndStaysBelowTheDevice) {
  const JobProgram program = TrainingProgram(10, 1e-3);
  SimOptions options = OptionsWith(OfPeak(60));
  options.sample_every = 1e-3;
  const auto result = Simulate({{&program}}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->samples.size(), 100u);
  Bytes most;
  for (const Sample& sample : result->samples) {
    most = std::max(most, sample.resident[0]);
  }
  EXPECT_LE(most, options.device_memory);
  EXPECT_GT(most, OfPeak(48));
}

TEST(SimulationTest, AJobThatHasEndedHoldsNothing) {
  const JobProgram program = TrainingProgram(10, 1e-3);
  const JobProgram longer = TrainingProgram(30, 1e-3);
  SimOptions options = OptionsWith(OfPeak(200));
  options.sample_every = 1e-3;
  const auto result = Simulate({{&program}, {&longer}}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->samples.back().resident[0].is_zero());
}

}  // namespace
}  // namespace mets::sim
