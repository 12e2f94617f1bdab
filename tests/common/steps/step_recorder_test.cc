#include "common/steps/step_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/common/steps/fake_job.h"

namespace mets::steps {
namespace {

constexpr int kLayers = 20;
constexpr uint32_t kOps = 2 * kLayers + 1;

// Index of the op with the most accesses of this kind before `op`, etc. are
// not needed: the program begins with `load`, where the least is live.
const StepOp& Forward(const StepProgram& program, int layer) {
  return program.ops[1 + layer];
}
const StepOp& Backward(const StepProgram& program, int layer) {
  return program.ops[2 * kLayers - layer];
}

TEST(StepRecorderTest, ProgramIsThereWhenTheStepHasRepeated) {
  FakeJob job(kLayers);
  int steps = 0;
  while (job.recorder.program() == nullptr && steps < 20) {
    job.Step();
    ++steps;
  }
  EXPECT_LE(steps, 5);
  EXPECT_EQ(job.recorder.program()->ops.size(), kOps);
}

TEST(StepRecorderTest, ProgramSaysWhatTheStepDoes) {
  FakeJob job(kLayers);
  job.Steps(8);
  job.Load();
  ASSERT_NE(job.recorder.program(), nullptr);
  const StepProgram& program = *job.recorder.program();
  ASSERT_EQ(program.ops.size(), kOps);
  EXPECT_EQ(program.signature, job.recorder.point().signature);
  EXPECT_EQ(program.duration, absl::Milliseconds(kOps));
  // Weights, input, activations, temporaries.
  EXPECT_EQ(program.buffers.size(), kLayers + 1 + kLayers + kLayers);
  int persistent = 0;
  for (const StepBuffer& buffer : program.buffers) {
    persistent += buffer.persistent;
  }
  EXPECT_EQ(persistent, kLayers);
  for (int i = 0; i < kLayers; ++i) {
    const StepOp& forward = Forward(program, i);
    ASSERT_EQ(forward.accesses.size(), 3);
    EXPECT_EQ(forward.start, absl::Milliseconds(1 + i));
    EXPECT_EQ(forward.busy, absl::Milliseconds(1));
    EXPECT_TRUE(forward.frees.empty());
    const StepBuffer& weight = program.buffers[forward.accesses[0].buffer];
    EXPECT_EQ(weight.size, MiB(1 + i));
    EXPECT_TRUE(weight.persistent);
    EXPECT_EQ(forward.accesses[2].kind, AccessKind::kNew);
    const uint32_t activation = forward.accesses[2].buffer;
    EXPECT_EQ(program.buffers[activation].size, MiB(10 + i));
    EXPECT_FALSE(program.buffers[activation].persistent);

    const StepOp& backward = Backward(program, i);
    ASSERT_EQ(backward.accesses.size(), 3);
    EXPECT_EQ(backward.accesses[0].buffer, activation);
    EXPECT_EQ(backward.accesses[0].kind, AccessKind::kRead);
    EXPECT_EQ(backward.accesses[1].buffer, forward.accesses[0].buffer);
    EXPECT_EQ(backward.accesses[1].kind, AccessKind::kWrite);
    EXPECT_EQ(backward.frees.size(), i == 0 ? 3 : 2);
  }
}

TEST(StepRecorderTest, LogicalBuffersFollowTheClientsBuffers) {
  FakeJob job(kLayers);
  job.Steps(8);
  for (int step = 0; step < 3; ++step) {
    job.Load();
    const StepProgram& program = *job.recorder.program();
    for (int i = 0; i < kLayers; ++i) {
      job.Forward(i);
      const uint32_t weight = Forward(program, i).accesses[0].buffer;
      const uint32_t activation = Forward(program, i).accesses[2].buffer;
      EXPECT_EQ(job.recorder.LogicalOf(job.weights[i]), weight);
      EXPECT_EQ(job.recorder.KeyOf(weight), job.weights[i]);
      EXPECT_EQ(job.recorder.LogicalOf(job.activations[i]), activation);
      EXPECT_EQ(job.recorder.KeyOf(activation), job.activations[i]);
      EXPECT_EQ(job.recorder.position(), 1 + i);
    }
    for (int i = kLayers - 1; i >= 0; --i) {
      const uint64_t freed = job.activations.back();
      const uint32_t logical = Forward(program, i).accesses[2].buffer;
      job.Backward(i);
      EXPECT_EQ(job.recorder.LogicalOf(freed), std::nullopt);
      EXPECT_EQ(job.recorder.KeyOf(logical), 0);
    }
  }
}

TEST(StepRecorderTest, SummaryAddsUp) {
  FakeJob job(kLayers);
  job.Steps(8);
  const StepSummary& summary = job.recorder.summary();
  Bytes weights, activations;
  for (int i = 0; i < kLayers; ++i) {
    weights += MiB(1 + i);
    activations += MiB(10 + i);
  }
  EXPECT_EQ(summary.duration, absl::Milliseconds(kOps));
  EXPECT_EQ(summary.persistent_live, weights);
  EXPECT_EQ(summary.working_set, weights + FakeJob::kInput + 2 * activations);
  EXPECT_EQ(summary.peak_live,
            weights + FakeJob::kInput + activations + MiB(10 + kLayers - 1));
  // Backward of the top layer: its activation, as large a temporary, a weight.
  EXPECT_EQ(summary.largest_op, 2 * MiB(10 + kLayers - 1) + MiB(kLayers));
}

TEST(StepRecorderTest, FastestRepetitionGivesTheTimes) {
  FakeJob job(kLayers);
  for (int i = 0; i < 6; ++i) {
    job.Load();
    job.now += absl::Milliseconds(500);
    for (int k = 0; k < kLayers; ++k) job.Forward(k);
    for (int k = kLayers - 1; k >= 0; --k) job.Backward(k);
  }
  EXPECT_EQ(job.recorder.program()->duration, absl::Milliseconds(500 + kOps));
  job.Steps(2);
  EXPECT_EQ(job.recorder.program()->duration, absl::Milliseconds(kOps));
  EXPECT_EQ(job.recorder.program()->ops[5].start, absl::Milliseconds(5));
}

// The step's remaining ops, behind Load.
void Finish(FakeJob* job) {
  for (int k = 0; k < kLayers; ++k) job->Forward(k);
  for (int k = kLayers - 1; k >= 0; --k) job->Backward(k);
}

// Times of launching what a device works on longer.
TEST(StepRecorderTest, TimesOfTheWorkStayWhateverLaunchingTakes) {
  FakeJob job(kLayers);
  job.Steps(4);
  job.Load();
  ASSERT_NE(job.recorder.program(), nullptr);
  job.recorder.AddWorkTimes({absl::Milliseconds(3)});
  EXPECT_EQ(job.recorder.program()->duration, absl::Milliseconds(kOps));
  job.recorder.AddWorkTimes(
      std::vector<absl::Duration>(kOps, absl::Milliseconds(3)));
  job.op_time = absl::Microseconds(10);
  Finish(&job);
  job.Steps(4);
  EXPECT_EQ(job.recorder.program()->duration, 3 * absl::Milliseconds(kOps));
  EXPECT_EQ(job.recorder.program()->ops[5].start, absl::Milliseconds(15));
}

// The ops of a repetition that should be timed.
int CountTimed(const StepRecorder& recorder, uint32_t lap, bool again = true) {
  int count = 0;
  for (uint32_t i = 0; i < kOps; ++i) {
    count += recorder.Times({lap, i, i}, again);
  }
  return count;
}

TEST(StepRecorderTest, OpsAreTimedInTurnOnceAllWereTimed) {
  FakeJob job(kLayers);
  job.Steps(4);
  job.Load();
  ASSERT_NE(job.recorder.program(), nullptr);
  EXPECT_EQ(CountTimed(job.recorder, 9, /*again=*/false), kOps);
  job.recorder.AddWorkTimes(
      std::vector<absl::Duration>(kOps, absl::Milliseconds(3)));
  EXPECT_EQ(CountTimed(job.recorder, 9, /*again=*/false), 0);
  for (uint32_t i = 0; i < kOps; ++i) {
    int laps = 0;
    for (uint32_t lap = 9; lap < 9 + StepRecorder::kParts; ++lap) {
      laps += job.recorder.Times({lap, i, i}, /*again=*/true);
    }
    EXPECT_EQ(laps, 1) << i;
  }
}

TEST(StepRecorderTest, EachOpsLeastTimeOfWorkCounts) {
  FakeJob job(kLayers);
  job.Steps(4);
  int timed = 0;
  for (int i = 0; i < 40; ++i) {
    job.Load();
    // One op has a stall in it, each time another; one is never seen.
    std::vector<absl::Duration> busy(kOps, absl::Milliseconds(3));
    busy[i % 4] = absl::Milliseconds(50);
    busy[7] = absl::InfiniteDuration();
    job.recorder.AddWorkTimes(busy);
    timed += CountTimed(job.recorder, i + 10);
    EXPECT_EQ(CountTimed(job.recorder, i + 10, /*again=*/false), 0);
    Finish(&job);
  }
  EXPECT_NEAR(timed, (StepRecorder::kTimings - 1) * kOps / StepRecorder::kParts,
              1);
  const StepProgram& program = *job.recorder.program();
  EXPECT_EQ(program.duration, 3 * absl::Milliseconds(kOps - 1));
  EXPECT_EQ(program.ops[8].start, absl::Milliseconds(21));
}

// What is told in the middle of a step is of none that has ended.
TEST(StepRecorderTest, TimesOfWorkAreThoseOfAWholeRepetition) {
  FakeJob job(kLayers);
  job.Steps(4);
  job.Load();
  const std::vector<absl::Duration> busy(kOps, absl::Milliseconds(3));
  job.recorder.AddWorkTimes(busy);
  job.Forward(0);
  job.recorder.AddWorkTimes(
      std::vector<absl::Duration>(kOps, absl::Milliseconds(1)));
  EXPECT_EQ(job.recorder.program()->duration, 3 * absl::Milliseconds(kOps));
}

// The value of a variable that each step allocates anew.
TEST(StepRecorderTest, ReplacedVariableIsOneBuffer) {
  FakeJob job(kLayers);
  uint64_t variable = job.Alloc(MiB(77));
  const auto step = [&] {
    job.Step();
    const OpId op = job.Begin(300, {{variable, false}});
    const uint64_t next = job.Alloc(MiB(77), op, 300);
    job.recorder.OpEnd(op, job.now);
    job.recorder.Free(variable);
    variable = next;
  };
  for (int i = 0; i < 10; ++i) step();
  ASSERT_NE(job.recorder.program(), nullptr);
  const uint64_t version = job.recorder.version();
  const std::optional<uint32_t> logical = job.recorder.LogicalOf(variable);
  ASSERT_TRUE(logical.has_value());
  EXPECT_TRUE(job.recorder.program()->buffers[*logical].persistent);
  EXPECT_EQ(job.recorder.KeyOf(*logical), variable);
  const std::vector<bool> within = AllocatedWithin(*job.recorder.program());
  EXPECT_TRUE(within[*logical]);
  EXPECT_FALSE(within[*job.recorder.LogicalOf(job.weights[0])]);
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(job.recorder.LogicalOf(variable), logical);
  EXPECT_EQ(job.recorder.version(), version);
}

// As where an optimizer is done with a weight before the backward pass is.
TEST(StepRecorderTest, WhatIsReplacedAndStillUsedIsToldApart) {
  FakeJob job(kLayers);
  uint64_t variable = job.Alloc(MiB(77));
  for (int i = 0; i < 10; ++i) {
    job.Step();
    const OpId update = job.Begin(300, {{variable, false}});
    const uint64_t next = job.Alloc(MiB(77), update, 300);
    job.recorder.OpEnd(update, job.now);
    job.recorder.OpEnd(job.Begin(301, {{variable, false}}), job.now);
    job.recorder.Free(variable);
    variable = next;
    job.recorder.OpEnd(job.Begin(302, {{variable, false}}), job.now);
  }
  ASSERT_NE(job.recorder.program(), nullptr);
  const uint32_t logical = *job.recorder.LogicalOf(variable);
  std::vector<AccessKind> kinds;
  for (const StepOp& op : job.recorder.program()->ops) {
    for (const Access& access : op.accesses) {
      if (access.buffer == logical) kinds.push_back(access.kind);
    }
  }
  EXPECT_EQ(kinds, (std::vector<AccessKind>{AccessKind::kRead, AccessKind::kNew,
                                            AccessKind::kReplaced,
                                            AccessKind::kRead}));
}

TEST(StepRecorderTest, MissingAllocationShiftsNoOthers) {
  FakeJob job(kLayers);
  job.Steps(8);
  const StepProgram& program = *job.recorder.program();
  job.Load();
  // An op of this step works in place: layer 3 allocates nothing.
  for (int i = 0; i < 3; ++i) job.Forward(i);
  const OpId op = job.Begin(103, {{job.weights[3], false}});
  job.recorder.OpEnd(op, job.now);
  job.activations.push_back(job.Alloc(MiB(13)));
  for (int i = 4; i < kLayers; ++i) {
    job.Forward(i);
    EXPECT_EQ(job.recorder.LogicalOf(job.activations[i]),
              Forward(program, i).accesses[2].buffer);
  }
}

TEST(StepRecorderTest, ProgramOfAStepThatComesBackIsKept) {
  FakeJob job(kLayers);
  job.Steps(30);
  const uint64_t signature = job.recorder.program()->signature;
  const std::optional<uint32_t> weight = job.recorder.LogicalOf(job.weights[7]);
  ASSERT_TRUE(weight.has_value());
  for (uint64_t i = 0; i < 100; ++i) job.Begin(5000 + i, {});
  EXPECT_EQ(job.recorder.program(), nullptr);
  EXPECT_EQ(job.recorder.LogicalOf(job.weights[7]), std::nullopt);
  job.Steps(2);
  ASSERT_NE(job.recorder.program(), nullptr);
  EXPECT_EQ(job.recorder.program()->signature, signature);
  EXPECT_EQ(job.recorder.LogicalOf(job.weights[7]), weight);
}

TEST(StepRecorderTest, NewModelOfTheSameShapeGetsItsOwnProgram) {
  FakeJob job(kLayers);
  job.Steps(10);
  const uint64_t version = job.recorder.version();
  for (uint64_t& weight : job.weights) {
    job.recorder.Free(weight);
    weight = job.Alloc(MiB(1 + (&weight - job.weights.data())));
  }
  job.Steps(8);
  ASSERT_NE(job.recorder.program(), nullptr);
  EXPECT_NE(job.recorder.version(), version);
  for (int i = 0; i < kLayers; ++i) {
    EXPECT_EQ(job.recorder.LogicalOf(job.weights[i]),
              Forward(*job.recorder.program(), i).accesses[0].buffer);
  }
}

TEST(StepRecorderTest, OpsMayOverlapAndEndLate) {
  FakeJob job(kLayers);
  OpId late;
  for (int i = 0; i < 10; ++i) {
    job.Load();
    job.recorder.OpEnd(late, job.now);  // Of the repetition before.
    for (int k = 0; k < kLayers; ++k) job.Forward(k);
    const OpId first = job.Begin(400, {{job.weights[0], false}});
    const OpId second = job.Begin(401, {{job.weights[1], true}});
    job.recorder.OpEnd(first, job.now);
    job.recorder.OpEnd(second, job.now);
    for (int k = kLayers - 1; k >= 0; --k) job.Backward(k);
    late = job.Begin(402, {{job.weights[2], true}});
  }
  const StepProgram& program = *job.recorder.program();
  ASSERT_EQ(program.ops.size(), kOps + 3);
  EXPECT_EQ(program.ops[kLayers + 1].busy, absl::Milliseconds(2));
  EXPECT_EQ(program.ops[kLayers + 2].busy, absl::Milliseconds(1));
}

// Three ops that are alike but for the weight that each reads, in any order.
// Returns their results, by weight.
std::vector<uint64_t> Project(FakeJob* job, std::vector<int> order) {
  std::vector<uint64_t> results(order.size());
  for (int i : order) {
    const OpId op = job->Begin(300, {{job->weights[i], false}});
    results[i] = job->Alloc(MiB(4), op, 300);
    job->recorder.OpEnd(op, job->now);
  }
  return results;
}

void FreeAll(FakeJob* job, const std::vector<uint64_t>& keys) {
  for (uint64_t key : keys) job->recorder.Free(key);
}

TEST(StepRecorderTest, OpsThatAreAlikeMayChangePlaces) {
  FakeJob job(kLayers);
  for (int i = 0; i < 8; ++i) {
    FreeAll(&job, Project(&job, {0, 1, 2}));
    job.Step();
  }
  std::vector<uint64_t> results = Project(&job, {0, 1, 2});
  std::vector<std::optional<uint32_t>> names;
  for (uint64_t key : results) names.push_back(job.recorder.LogicalOf(key));
  EXPECT_NE(names[0], std::nullopt);
  EXPECT_NE(names[0], names[1]);
  FreeAll(&job, results);
  job.Step();
  results = Project(&job, {2, 0, 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(job.recorder.LogicalOf(results[i]), names[i]) << i;
  }
}

TEST(StepRecorderTest, ResultsOfUnknownDataAreNamedByKindAndSize) {
  FakeJob job(kLayers);
  for (int i = 0; i < 8; ++i) {
    FreeAll(&job, Project(&job, {0, 1, 2}));
    job.Step();
  }
  std::vector<uint64_t> known = Project(&job, {0, 1});
  const uint64_t stranger = job.Alloc(MiB(3));
  const OpId op = job.Begin(300, {{stranger, false}});
  const uint64_t result = job.Alloc(MiB(4), op, 300);
  const std::optional<uint32_t> name = job.recorder.LogicalOf(result);
  ASSERT_NE(name, std::nullopt);
  for (uint64_t key : known) EXPECT_NE(job.recorder.LogicalOf(key), name);
}

// In the middle of each step a mask is made, and takes the place of the one
// before, which may have been kept.
void MaskedStep(FakeJob* job, bool keep, uint64_t* mask) {
  job->Load();
  for (int i = 0; i < kLayers; ++i) job->Forward(i);
  const OpId op = job->Begin(700, {{job->weights[0], false}});
  const uint64_t before = std::exchange(*mask, job->Alloc(MiB(32), op, 700));
  job->recorder.OpEnd(op, job->now);
  job->recorder.Free(before);
  for (int i = kLayers - 1; i >= 0; --i) job->Backward(i);
  if (!keep) job->recorder.Free(*mask);
}

int PersistentBuffers(const StepProgram& program) {
  int count = 0;
  for (const StepBuffer& buffer : program.buffers) count += buffer.persistent;
  return count;
}

TEST(StepRecorderTest, ARepetitionThatBeginsWithLessIsRecordedInstead) {
  FakeJob job(kLayers);
  uint64_t mask = 0;
  for (int i = 0; i < 10; ++i) MaskedStep(&job, /*keep=*/true, &mask);
  ASSERT_NE(job.recorder.program(), nullptr);
  EXPECT_EQ(PersistentBuffers(*job.recorder.program()), kLayers + 1);
  const uint64_t number = job.recorder.program_number();
  for (int i = 0; i < 4; ++i) MaskedStep(&job, /*keep=*/false, &mask);
  ASSERT_NE(job.recorder.program(), nullptr);
  EXPECT_EQ(PersistentBuffers(*job.recorder.program()), kLayers);
  EXPECT_NE(job.recorder.program_number(), number);
}

// The mask that it began with would be a buffer that no other repetition has.
TEST(StepRecorderTest, ARepetitionThatEndsWithLessThanItBeganIsNotRecorded) {
  for (int kept = 1; kept < 6; ++kept) {
    FakeJob job(kLayers);
    uint64_t mask = 0;
    for (int i = 0; i < kept; ++i) MaskedStep(&job, /*keep=*/true, &mask);
    while (job.recorder.program() == nullptr) {
      MaskedStep(&job, /*keep=*/false, &mask);
    }
    EXPECT_EQ(job.recorder.program()->buffers.size(), 3 * kLayers + 2) << kept;
  }
}

// A step whose last op makes a mask, which the first op frees, or the third one
// of the next step: then the least lives in front of that.
void StepWithMask(FakeJob* job, bool late, uint64_t* mask) {
  job->Load();
  if (!late) job->recorder.Free(*mask);
  job->Forward(0);
  if (late) job->recorder.Free(*mask);
  for (int i = 1; i < kLayers; ++i) job->Forward(i);
  for (int i = kLayers - 1; i >= 0; --i) job->Backward(i);
  const OpId op = job->Begin(700, {{job->weights[0], false}});
  *mask = job->Alloc(MiB(late ? 45 : 1), op, 700);
  job->recorder.OpEnd(op, job->now);
}

TEST(StepRecorderTest, AStepWhoseBoundaryHasMovedIsRecordedAnew) {
  FakeJob job(kLayers);
  uint64_t mask = job.Alloc(MiB(1));
  for (int i = 0; i < 8; ++i) StepWithMask(&job, /*late=*/false, &mask);
  ASSERT_NE(job.recorder.program(), nullptr);
  const uint64_t number = job.recorder.program_number();
  for (int i = 0; i < 12; ++i) StepWithMask(&job, /*late=*/true, &mask);
  ASSERT_NE(job.recorder.program(), nullptr);
  EXPECT_NE(job.recorder.program_number(), number);
  job.Load();
  for (int i = 0; i < kLayers; ++i) {
    job.Forward(i);
    const StepProgram& program = *job.recorder.program();
    const StepOp& op = program.ops[job.recorder.position()];
    ASSERT_FALSE(op.accesses.empty()) << i;
    EXPECT_EQ(op.accesses[0].buffer, job.recorder.LogicalOf(job.weights[i]))
        << i;
  }
}

TEST(StepRecorderTest, UnknownBuffersAreIgnored) {
  FakeJob job(kLayers);
  job.recorder.Free(999999);
  for (int i = 0; i < 8; ++i) {
    job.Step();
    job.recorder.OpEnd(job.Begin(500, {{888888, true}}), job.now);
  }
  ASSERT_NE(job.recorder.program(), nullptr);
  EXPECT_TRUE(job.recorder.program()->ops.back().accesses.empty());
  EXPECT_EQ(job.recorder.KeyOf(1u << 30), 0);
}

}  // namespace
}  // namespace mets::steps
