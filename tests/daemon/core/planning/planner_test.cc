#include "daemon/core/planning/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "daemon/core/planning/plan_search.h"
#include "daemon/core/planning/plan_timing.h"
#include "daemon/policy/registry.h"

namespace mets::core {
namespace {

using steps::AccessKind;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kLayers = 10;
const absl::Duration kOpTime = absl::Milliseconds(1);

steps::StepOp Op(int position, std::vector<steps::Access> accesses,
                 std::vector<uint32_t> frees = {}) {
  steps::StepOp op;
  op.start = position * kOpTime;
  op.busy = kOpTime;
  op.accesses = std::move(accesses);
  op.frees = std::move(frees);
  return op;
}

// A pass up, whose layers allocate 10 MiB each, and a pass down that reads and
// frees them. One weight of 1 MiB persists.
steps::StepProgram Training() {
  steps::StepProgram program;
  program.signature = 5;
  program.buffers.push_back({MiB(1), true});
  for (uint32_t i = 1; i <= kLayers; ++i) {
    program.buffers.push_back({MiB(10), false});
    program.ops.push_back(Op(program.ops.size(),
                             {{i, AccessKind::kNew}, {0, AccessKind::kRead}}));
  }
  for (uint32_t i = kLayers; i >= 1; --i) {
    program.ops.push_back(Op(program.ops.size(),
                             {{i, AccessKind::kRead}, {0, AccessKind::kWrite}},
                             {i}));
  }
  program.duration = program.ops.size() * kOpTime;
  return program;
}

Bytes HalfThePeak(const StepProfile& profile) {
  return std::max(Bytes(profile.peak().count() / 2), profile.largest_op());
}

// Ops that use anything in any order.
steps::StepProgram AnyProgram(uint32_t seed) {
  std::mt19937 random(seed);
  steps::StepProgram program;
  program.signature = 1 + seed;
  const uint32_t buffers = 5 + random() % 30, ops = 10 + random() % 60;
  std::vector<std::pair<uint32_t, uint32_t>> lives;  // First and last op.
  for (uint32_t b = 0; b < buffers; ++b) {
    const bool persistent = random() % 3 == 0;
    program.buffers.push_back({MiB(1 + random() % 20), persistent});
    uint32_t first = persistent ? 0 : random() % ops;
    lives.push_back(
        {first, persistent ? ops - 1 : first + random() % (ops - first)});
  }
  for (uint32_t op = 0; op < ops; ++op) {
    program.ops.push_back(Op(op, {}));
    for (uint32_t b = 0; b < buffers; ++b) {
      const auto [first, last] = lives[b];
      const bool is_new = !program.buffers[b].persistent && op == first;
      if (op < first || op > last || (!is_new && random() % 6 > 0)) continue;
      program.ops[op].accesses.push_back({b, is_new ? AccessKind::kNew
                                             : random() % 2 > 0
                                                 ? AccessKind::kWrite
                                                 : AccessKind::kRead});
    }
    for (uint32_t b = 0; b < buffers; ++b) {
      if (!program.buffers[b].persistent && lives[b].second == op) {
        program.ops[op].frees.push_back(b);
      }
    }
  }
  program.duration = ops * kOpTime;
  return program;
}

absl::StatusOr<steps::StepPlan> Plan(const steps::StepProgram& program,
                                     Bytes budget, double bus,
                                     const std::string& policy = "lru") {
  return MakePlan(program, {budget, {bus, bus}}, **policy::MakePolicy(policy));
}

TEST(PlannerTest, NothingMovesInAStepThatFits) {
  const auto plan = Plan(Training(), MiB(101), 10e9);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->absences, IsEmpty());
  EXPECT_EQ(plan->signature, 5);
  EXPECT_EQ(plan->duration, Training().duration);
}

TEST(PlannerTest, AnOpThatIsTooLargeIsSaidWithItsSize) {
  const auto plan = Plan(Training(), MiB(10), 10e9);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(plan.status().message(), HasSubstr("11 MiB"));
  EXPECT_THAT(plan.status().message(), HasSubstr("10 MiB"));
}

TEST(PlannerTest, WhatIsUsedLastComesBackFirst) {
  const auto plan = Plan(Training(), MiB(61), 1e12, "absence");
  ASSERT_TRUE(plan.ok());
  // The four first layers, at least: they are unused for longest.
  EXPECT_GE(plan->evicted, MiB(40));
  EXPECT_LE(plan->evicted, MiB(60));
  EXPECT_EQ(plan->evicted, plan->restored);
  uint32_t before = 0;
  for (const steps::Absence& absence : plan->absences) {
    EXPECT_TRUE(absence.returns);
    EXPECT_EQ(absence.evict_after, absence.buffer - 1);
    EXPECT_GE(absence.use, before);
    before = absence.use;
  }
  EXPECT_LE(plan->duration, Training().duration * 1.02);
}

TEST(PlannerTest, ASlowerBusBringsBackEarlierAndTakesLonger) {
  const auto fast = Plan(Training(), MiB(61), 100e9);
  const auto slow = Plan(Training(), MiB(61), 12e9);
  const auto crawling = Plan(Training(), MiB(61), 1e9);
  ASSERT_TRUE(fast.ok() && slow.ok() && crawling.ok());
  const auto lead = [](const steps::StepPlan& plan) {
    uint32_t most = 0;
    for (const steps::Absence& absence : plan.absences) {
      most = std::max(most, absence.use - absence.restore_at);
    }
    return most;
  };
  EXPECT_GT(lead(*slow), lead(*fast));
  EXPECT_LE(fast->duration, slow->duration);
  EXPECT_GE(
      crawling->duration,
      absl::Seconds(static_cast<double>(crawling->evicted.count()) / 1e9));
}

TEST(PlannerTest, WhatWasOnlyReadSinceItCameBackLeavesWithoutACopy) {
  // Buffer 0 is read by every second op; the ops between need its room.
  steps::StepProgram program;
  program.signature = 5;
  program.buffers = {{MiB(30), true}, {MiB(30), false}, {MiB(30), false}};
  program.ops = {
      Op(0, {{0, AccessKind::kRead}}), Op(1, {{1, AccessKind::kNew}}, {1}),
      Op(2, {{0, AccessKind::kRead}}), Op(3, {{2, AccessKind::kNew}}, {2})};
  program.duration = 4 * kOpTime;
  const auto plan = Plan(program, MiB(30), 100e9);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->absences.size(), 2);
  EXPECT_TRUE(plan->absences[0].clean);
  EXPECT_TRUE(plan->absences[1].clean);
  EXPECT_EQ(plan->evicted, Bytes());
  EXPECT_EQ(plan->restored, MiB(60));
}

TEST(PlannerTest, AnEvictionThatWasCalledOffLeavesNothingInTheSlot) {
  steps::StepProgram program;
  program.buffers = {{MiB(10), true}, {MiB(10), false}};
  program.ops = {
      Op(0, {{0, AccessKind::kWrite}}), Op(1, {{0, AccessKind::kRead}}),
      Op(2, {{1, AccessKind::kNew}}, {1}), Op(3, {{0, AccessKind::kRead}})};
  program.duration = program.ops.size() * kOpTime;
  const StepProfile profile(program);
  const BusSpeed bus{1e9, 1e9};
  steps::Absence needed, useless;
  needed.evict_after = 1;
  needed.restore_at = needed.use = 3;
  useless.evict_after = 0;
  useless.restore_at = useless.use = 1;  // Too soon for it to have left.
  std::vector<steps::Absence> one = {needed}, both = {needed, useless};
  SortAbsences(profile, &one);
  SortAbsences(profile, &both);
  EXPECT_GE(EstimateDuration(profile, MiB(15), bus, both),
            EstimateDuration(profile, MiB(15), bus, one));
}

TEST(PlannerTest, APolicyThatSlowsTheStepDownIsNotFollowed) {
  const auto farthest = policy::MakeReferencePolicy();
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const steps::StepProgram program = AnyProgram(seed);
    const StepProfile profile(program);
    const PlanGoal goal{HalfThePeak(profile), {20e9, 20e9}};
    const auto best = MakePlan(program, goal, *farthest);
    ASSERT_TRUE(best.ok());
    for (const std::string& name : policy::PolicyNames()) {
      const auto plan = MakePlan(program, goal, **policy::MakePolicy(name));
      ASSERT_TRUE(plan.ok());
      EXPECT_LE(plan->duration, best->duration * 1.01) << name << " " << seed;
    }
  }
}

// Where what is replaced and what replaces it live side by side, the step needs
// both.
TEST(PlannerTest, AReplacedBufferLivesTwiceForAMoment) {
  steps::StepProgram program = Training();
  program.buffers.push_back({MiB(20), true});
  const auto weight = static_cast<uint32_t>(program.buffers.size() - 1);
  program.ops.back().accesses.push_back({weight, AccessKind::kRead});
  program.ops.back().accesses.push_back({weight, AccessKind::kNew});
  const Bytes without = StepProfile(program).peak();
  program.ops.back().frees.push_back(weight);
  const StepProfile profile(program);
  EXPECT_EQ(profile.peak(), without);
  EXPECT_EQ(profile.live(profile.ops() - 1), MiB(1 + 10 + 20 + 20));
  EXPECT_EQ(profile.largest_op(), MiB(1 + 10 + 20 + 20));
  const auto plan = Plan(program, MiB(60), 20e9, "lru");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LT(plan->duration, absl::InfiniteDuration());
  EXPECT_FALSE(Plan(program, MiB(50), 20e9, "lru").ok());
}

// Its copy has all of that op's time.
TEST(PlannerTest, AReplacedBufferLeavesWhileTheOldOneIsStillUsed) {
  steps::StepProgram program = Training();
  const uint32_t weight = program.buffers.size();
  program.buffers.push_back({MiB(30), true});
  program.ops[0].accesses.push_back({weight, AccessKind::kRead});
  program.ops[1].accesses.push_back({weight, AccessKind::kNew});
  program.ops[2].accesses.push_back({weight, AccessKind::kReplaced});
  program.ops[2].frees.push_back(weight);
  const auto policy = policy::MakePolicy("next_use");
  const auto plan = MakePlan(program, {MiB(95), {1e12, 1e12}}, **policy);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto leaves =
      std::find_if(plan->absences.begin(), plan->absences.end(),
                   [&](const auto& a) { return a.buffer == weight; });
  ASSERT_NE(leaves, plan->absences.end());
  EXPECT_EQ(leaves->evict_after, 1u);
  EXPECT_EQ(leaves->use, 0u);
}

TEST(PlannerTest, ChosenAbsencesKeepEachOpWithinTheBudget) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const steps::StepProgram program = AnyProgram(seed);
    const StepProfile profile(program);
    const Bytes budget = HalfThePeak(profile);
    const BusSpeed bus{20e9, 20e9};
    for (const std::string& name : policy::PolicyNames()) {
      std::vector<steps::Absence> absences =
          ChooseAbsences(profile, budget, bus, **policy::MakePolicy(name));
      ChooseTimes(profile, budget, bus, &absences);
      for (Bytes resident : ResidentBytes(profile, absences)) {
        EXPECT_LE(resident, budget) << name << " " << seed;
      }
    }
  }
}

TEST(PlannerTest, NoChoiceOfThePolicyIsFasterThanThePlan) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const steps::StepProgram program = AnyProgram(seed);
    const StepProfile profile(program);
    const Bytes budget = HalfThePeak(profile);
    const BusSpeed bus{20e9, 20e9};
    const auto policy = policy::MakePolicy("lru");
    std::vector<steps::Absence> absences =
        ChooseAbsences(profile, budget, bus, **policy);
    ChooseTimes(profile, budget, bus, &absences);
    const auto plan = MakePlan(program, {budget, bus}, **policy);
    ASSERT_TRUE(plan.ok());
    EXPECT_LE(absl::ToDoubleSeconds(plan->duration),
              EstimateDuration(profile, budget, bus, absences) * 1.005)
        << seed;
  }
}

// What leaves for nothing, stays; and a copy that would come too late, begins
// earlier.
TEST(PlannerTest, TheBusCopiesWhileAnotherMoveIsMapped) {
  const steps::StepProgram program = Training();
  const StepProfile profile(program);
  const Bytes budget = HalfThePeak(profile);
  const double speed = 4e9;  // A buffer takes longer than two ops.
  std::vector<steps::Absence> absences = ChooseAbsences(
      profile, budget, {speed, speed}, **policy::MakePolicy("next_use"));
  ChooseTimes(profile, budget, {speed, speed}, &absences);
  const double one =
      EstimateDuration(profile, budget, {speed, speed, 1}, absences);
  const double two =
      EstimateDuration(profile, budget, {speed, speed, 2}, absences);
  EXPECT_LT(two, one);
  double copied = 0;
  for (const steps::Absence& absence : absences) {
    copied += CopySeconds(profile.size(absence.buffer), speed);
  }
  EXPECT_GE(two, copied);
}

TEST(PlannerTest, TryingMakesAPoorPlanBetter) {
  const steps::StepProgram program = Training();
  const StepProfile profile(program);
  const BusSpeed bus{20e9, 20e9};
  const Bytes budget = MiB(80);
  std::vector<steps::Absence> poor;
  for (const steps::Absence& absence : AllAbsences(profile)) {
    if (absence.buffer != 0) poor.push_back(absence);
  }
  SortAbsences(profile, &poor);
  double seconds = EstimateDuration(profile, budget, bus, poor);
  const double before = seconds;
  const size_t absences = poor.size();
  ImprovePlan(profile, budget, bus, &poor, &seconds);
  EXPECT_LT(seconds, before * 0.9);
  EXPECT_LT(poor.size(), absences);
  EXPECT_EQ(seconds, EstimateDuration(profile, budget, bus, poor));
}

TEST(PlannerTest, AnyStepStaysWithinItsBudgetUnderAnyPolicy) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const steps::StepProgram program = AnyProgram(seed);
    const StepProfile profile(program);
    for (const std::string& name : policy::PolicyNames()) {
      for (int percent : {90, 60, 30}) {
        const Bytes budget =
            std::max(Bytes(profile.peak().count() / 100 * percent),
                     profile.largest_op());
        const auto plan = Plan(program, budget, 20e9, name);
        ASSERT_TRUE(plan.ok());
        // Each op found its memory.
        EXPECT_LT(plan->duration, absl::InfiniteDuration())
            << name << " " << seed;
        for (const steps::Absence& absence : plan->absences) {
          for (const Use& use : profile.buffer(absence.buffer).uses) {
            const bool around = absence.use <= absence.evict_after;
            const bool away =
                around ? use.op > absence.evict_after || use.op < absence.use
                       : use.op > absence.evict_after && use.op < absence.use;
            EXPECT_FALSE(away) << name << " " << seed << " " << use.op;
          }
        }
        EXPECT_GE(plan->duration, program.duration * 0.999);
      }
    }
  }
}

}  // namespace
}  // namespace mets::core
