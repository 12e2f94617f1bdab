#include "daemon/core/steps/plan_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::SizeIs;

constexpr Bytes kBuffer = MiB(16);
constexpr uint64_t kSignature = 77;

class PlanKeeperTest : public ::testing::Test {
 protected:
  PlanKeeperTest() : PlanKeeperTest(GiB(1)) {}
  explicit PlanKeeperTest(Bytes swap)
      : cluster_(FastBus(FakeCluster::Config(MiB(64), swap))) {}

  static CoreConfig FastBus(CoreConfig config) {
    config.devices[0].bus_bytes_per_second = 50e9;
    return config;
  }

  // Five buffers of 16 MiB, each used by an op of its own, all live at once.
  StepSeen Seen(const FakeSession& s) const {
    StepSeen seen;
    seen.session = s.id;
    seen.part.signature = kSignature;
    seen.part.duration = absl::Milliseconds(50);
    seen.part.buffers.assign(5, {kBuffer, true});
    seen.part.ops.resize(5);
    for (uint32_t i = 0; i < 5; ++i) {
      seen.part.ops[i].start = absl::Milliseconds(10 * i);
      seen.part.ops[i].busy = absl::Milliseconds(10);
      seen.part.ops[i].accesses = {{i, steps::AccessKind::kWrite}};
    }
    return seen;
  }
  void Progress(FakeSession& s, uint64_t signature = kSignature) {
    StepProgress progress;
    progress.session = s.id;
    progress.signature = signature;
    progress.duration = absl::Milliseconds(50);
    cluster_.Send(s, progress);
    cluster_.Report(s);
    cluster_.Pump();
  }
  void Train(FakeSession& s) {
    cluster_.Send(s, Seen(s));
    Progress(s);
  }
  // Three resident buffers: the step's 0, 1 and 2.
  std::vector<BufferId> Fill(FakeSession& s) {
    std::vector<BufferId> buffers;
    for (uint32_t i = 0; i < 3; ++i) {
      buffers.push_back(cluster_.Alloc(s, kBuffer));
      cluster_.Pump();
      s.buffers.at(buffers.back()).logical = i + 1;
    }
    cluster_.Report(s);
    cluster_.Pump();
    return buffers;
  }
  // And one of 8 MiB more that is the step's first too.
  void FillAhead(FakeSession& s) {
    Fill(s);
    const BufferId before = cluster_.Alloc(s, MiB(8));
    cluster_.Pump();
    s.buffers.at(before).logical = 1;
  }
  steps::StepPlan Away(std::vector<uint32_t> buffers) const {
    steps::StepPlan plan;
    plan.signature = kSignature;
    for (uint32_t b : buffers) {
      steps::Absence absence;
      absence.buffer = absence.evict_after = b;
      absence.restore_at = absence.use = (b + 3) % 5;
      plan.absences.push_back(absence);
    }
    return plan;
  }
  void Plan(FakeSession& s, std::vector<uint32_t> buffers) {
    Train(s);
    ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
    cluster_.AnswerPlan(Away(std::move(buffers)));
    cluster_.Pump();
    // An extent was missing at first.
    cluster_.Pump();
  }
  Bytes Used() { return cluster_.device().swap_used; }
  // In slots, whatever lies there; all of it is free once nobody has any.
  void ExpectNoSlotsLeft(FakeSession& s) {
    for (auto& [id, buffer] : std::map(s.buffers)) cluster_.Free(s, id, false);
    cluster_.Report(s);
    cluster_.Pump();
    EXPECT_EQ(Used(), Bytes());
  }

  FakeCluster cluster_;
};

TEST_F(PlanKeeperTest, AStepThatNeedsMoreThanThereIsGetsAPlan) {
  FakeSession& s = cluster_.Open("a");
  Fill(s);
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  const PlanTask& task = cluster_.plan_tasks.front();
  EXPECT_EQ(task.program->signature, kSignature);
  EXPECT_LE(task.budget, MiB(64));
  EXPECT_GE(task.budget, MiB(62));
  cluster_.AnswerPlan(Away({0, 3}));
  cluster_.Pump();
  ASSERT_TRUE(s.plan.has_value());
  EXPECT_EQ(s.plan->plan.signature, kSignature);
  ASSERT_THAT(s.plan->places, SizeIs(2));
  EXPECT_EQ(s.plan->places[0].buffer, 0);
  EXPECT_EQ(s.plan->places[1].buffer, 3);
  // It holds until something changes.
  cluster_.Advance(absl::Seconds(10));
  Progress(s);
  EXPECT_THAT(cluster_.plan_tasks, SizeIs(0));
}

TEST_F(PlanKeeperTest, WhatIsNotTheStepsTakesOfItsMemory) {
  FakeSession& s = cluster_.Open("a");
  Fill(s);
  cluster_.Alloc(s, kBuffer);
  cluster_.Pump();
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  EXPECT_LE(cluster_.plan_tasks.front().budget, MiB(48));
}

TEST_F(PlanKeeperTest, APlanThatMovesTooMuchBesideAHigherClassEnds) {
  FakeSession& high = cluster_.Open("high", {1, kBuffer, {}, 5});
  const BufferId used = cluster_.Alloc(high, kBuffer);
  cluster_.Pump();
  FakeSession& s = cluster_.Open("low", {1, MiB(48)});
  // A second passes, in which it has moved as much as may be, or far more.
  const auto move = [&](Bytes bytes, bool high_computes) {
    cluster_.Pin(high, used, high_computes);
    cluster_.Report(high);
    cluster_.Pump();
    cluster_.Advance(absl::Milliseconds(900));
    s.totals.restored += bytes;
    Progress(s);
    Progress(s);
  };
  Fill(s);
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  steps::StepPlan plan = Away({0, 3});
  plan.evicted = plan.restored = GiB(1);
  plan.duration = absl::Milliseconds(50);
  cluster_.AnswerPlan(plan);
  cluster_.Pump();
  cluster_.Pump();
  for (int i = 0; i < 3; ++i) move(GiB(10), true);
  EXPECT_TRUE(s.plan.has_value());
  for (int i = 0; i < 3; ++i) move(GiB(60), true);
  EXPECT_FALSE(s.plan.has_value());
  for (int i = 0; i < 3; ++i) move(Bytes(), true);
  EXPECT_FALSE(s.plan.has_value());
  EXPECT_THAT(cluster_.plan_tasks, SizeIs(0));
  // The higher class has no work any more.
  for (int i = 0; i < 2; ++i) move(Bytes(), false);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  cluster_.AnswerPlan(plan);
  cluster_.Pump();
  cluster_.Pump();
  EXPECT_TRUE(s.plan.has_value());
}

// As what an input pipeline has loaded for the next step.
TEST_F(PlanKeeperTest, WhatHasASuccessorButLivesTakesOfItsMemory) {
  FakeSession& s = cluster_.Open("a");
  FillAhead(s);
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  EXPECT_LE(cluster_.plan_tasks.front().budget, MiB(64 - 8));
}

// The program knows that both live for a moment.
TEST_F(PlanKeeperTest, WhatTheStepReplacesJustNowCountsOnce) {
  FakeSession& s = cluster_.Open("a");
  FillAhead(s);
  StepNeed need;
  need.session = s.id;
  need.peak = kBuffer * 6;
  need.persistent = kBuffer * 5;  // As the program says.
  need.step = absl::Milliseconds(50);
  cluster_.Send(s, need);
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  EXPECT_GE(cluster_.plan_tasks.front().budget, MiB(62));
}

TEST_F(PlanKeeperTest, AStepThatFitsGetsNone) {
  FakeSession& s = cluster_.Open("a");
  StepSeen seen = Seen(s);
  seen.part.buffers.assign(5, {MiB(8), true});
  cluster_.Send(s, seen);
  Progress(s);
  EXPECT_THAT(cluster_.plan_tasks, SizeIs(0));
}

TEST_F(PlanKeeperTest, ALimitCountsAsMemory) {
  FakeSession& s = cluster_.Open("a", {1, MiB(32)});
  StepSeen seen = Seen(s);
  seen.part.buffers.assign(5, {MiB(8), true});
  cluster_.Send(s, seen);
  Progress(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  EXPECT_LE(cluster_.plan_tasks.front().budget, MiB(32));
}

TEST_F(PlanKeeperTest, APlanEndsWhenTheStepFits) {
  FakeSession& s = cluster_.Open("a", {1, MiB(60)});
  Plan(s, {0});
  ASSERT_TRUE(s.plan.has_value());
  StepSeen seen = Seen(s);
  seen.part.buffers.assign(5, {MiB(8), true});
  cluster_.Send(s, seen);
  Progress(s);
  EXPECT_FALSE(s.plan.has_value());
  EXPECT_EQ(s.plans, 2);
}

TEST_F(PlanKeeperTest, ItIsPlannedAnewWhenTheMemoryChanges) {
  FakeSession& s = cluster_.Open("a");
  Fill(s);
  Plan(s, {0});
  FakeSession& other = cluster_.Open("b");
  const BufferId buffer = cluster_.Alloc(other, kBuffer);
  cluster_.Pump();
  cluster_.Pin(other, buffer, true);
  cluster_.Report(other);
  cluster_.Pump();
  Progress(s);
  EXPECT_THAT(cluster_.plan_tasks, SizeIs(0));  // Not so soon.
  cluster_.Advance(absl::Seconds(3));
  cluster_.Report(other);
  Progress(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  EXPECT_LE(cluster_.plan_tasks.front().budget, MiB(48));
}

TEST_F(PlanKeeperTest, BytesStayInAnEarlierPlansSlotWhileTheyAreNeeded) {
  FakeSession& s = cluster_.Open("a");
  const std::vector<BufferId> buffers = Fill(s);
  Plan(s, {0, 1});
  cluster_.EvictByPlan(s, buffers[0], 0);
  cluster_.Report(s);
  cluster_.Pump();
  EXPECT_EQ(Used(), kBuffer);
  Plan(s, {1, 2});  // The program has come again.
  EXPECT_EQ(s.plans, 2);
  EXPECT_EQ(Used(), kBuffer);
  cluster_.RestoreByPlan(s, buffers[0]);  // Checks the bytes.
  cluster_.Report(s);
  cluster_.Pump();
  EXPECT_EQ(Used(), Bytes());
  ExpectNoSlotsLeft(s);
}

TEST_F(PlanKeeperTest, BuffersTakeTheirPlaceInASlotOneAfterTheOther) {
  FakeSession& s = cluster_.Open("a");
  const std::vector<BufferId> buffers = Fill(s);
  Plan(s, {0});
  for (int i = 0; i < 6; ++i) {
    const BufferId buffer = buffers[i % 2];
    cluster_.EvictByPlan(s, buffer, 0);
    if (i % 3 > 0) cluster_.Report(s);
    cluster_.Pump();
    cluster_.RestoreByPlan(s, buffer);
    EXPECT_TRUE(s.buffers.at(buffer).resident);
    cluster_.Touch(s, buffer, true);
    if (i % 3 < 2) cluster_.Report(s);
    cluster_.Pump();
  }
  ExpectNoSlotsLeft(s);
}

TEST_F(PlanKeeperTest, BytesInAPlansSlotOutliveTheStream) {
  FakeSession& s = cluster_.Open("a");
  const std::vector<BufferId> buffers = Fill(s);
  Plan(s, {0, 1});
  cluster_.EvictByPlan(s, buffers[0], 0);
  cluster_.Report(s);
  cluster_.Pump();
  cluster_.EvictByPlan(s, buffers[1], 1);  // Nobody has been told.
  cluster_.Lose(s);
  cluster_.Resume(s);
  cluster_.Pump();
  EXPECT_EQ(Used(), 2 * kBuffer);
  for (int i : {0, 1}) cluster_.RestoreByPlan(s, buffers[i]);
  cluster_.Report(s);
  cluster_.Pump();
  EXPECT_EQ(Used(), Bytes());
  ExpectNoSlotsLeft(s);
}

TEST_F(PlanKeeperTest, AnOrderFindsThatThePlanWasFaster) {
  FakeSession& s = cluster_.Open("a");
  const std::vector<BufferId> buffers = Fill(s);
  Plan(s, {0});
  FakeSession& other = cluster_.Open("b");
  cluster_.Alloc(other, MiB(48));
  cluster_.DeliverToCore(other);  // Orders s to evict.
  for (int i : {0, 1, 2}) cluster_.EvictByPlan(s, buffers[i], 0);
  cluster_.Report(s);
  cluster_.Pump();
  EXPECT_FALSE(s.buffers.at(buffers[0]).resident);
  cluster_.RestoreByPlan(s, buffers[0]);
  cluster_.Report(s);
  cluster_.Pump();
  cluster_.Advance(absl::Seconds(1));
  ExpectNoSlotsLeft(s);
}

TEST_F(PlanKeeperTest, APlanThatIsNotFollowedHasNoSlots) {
  FakeSession& s = cluster_.Open("a");
  s.planless = true;
  Plan(s, {0, 1});
  EXPECT_EQ(s.plans, 1);
  const BufferId buffer = cluster_.Alloc(s, MiB(64));
  cluster_.Pump();
  EXPECT_TRUE(s.buffers.at(buffer).resident);
  cluster_.Kill(s);
}

TEST_F(PlanKeeperTest, AStepThatCannotBePlannedGoesOnWithout) {
  FakeSession& s = cluster_.Open("a");
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  cluster_.AnswerPlan(absl::ResourceExhaustedError("one op needs more"));
  cluster_.Pump();
  EXPECT_EQ(s.plans, 0);
  cluster_.Advance(absl::Seconds(10));
  Progress(s);
  EXPECT_THAT(cluster_.plan_tasks, SizeIs(0));
}

TEST_F(PlanKeeperTest, APlanWaitsForAStepThatDoesNotRepeatNow) {
  FakeSession& s = cluster_.Open("a");
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  Progress(s, 0);
  cluster_.AnswerPlan(Away({0}));
  cluster_.Pump();
  EXPECT_EQ(s.plans, 0);
  Progress(s);
  EXPECT_TRUE(s.plan.has_value());
}

TEST_F(PlanKeeperTest, AnAnswerForASessionThatHasGoneIsIgnored) {
  FakeSession& s = cluster_.Open("a");
  Train(s);
  ASSERT_THAT(cluster_.plan_tasks, SizeIs(1));
  cluster_.Kill(s);
  cluster_.AnswerPlan(Away({0}));
  EXPECT_EQ(s.plans, 0);
}

TEST_F(PlanKeeperTest, TwoBuffersCannotLieInOneSlot) {
  FakeSession& s = cluster_.Open("a");
  const std::vector<BufferId> buffers = Fill(s);
  Plan(s, {0});
  BufferChanges changes;
  changes.session = s.id;
  changes.device = "host0";
  for (BufferId id : {buffers[0], buffers[1]}) {
    BufferReport report;
    report.id = id;
    report.size = kBuffer;
    report.state = BufferState::kSwapped;
    report.slot = s.plan->places[0].slot.id;
    changes.buffers.push_back(report);
  }
  cluster_.Step(changes);  // Checks the invariants.
  EXPECT_EQ(Used(), kBuffer);
}

class LittleSwapTest : public PlanKeeperTest {
 protected:
  LittleSwapTest() : PlanKeeperTest(MiB(16)) {}
};

TEST_F(LittleSwapTest, APlanWaitsForSwapSpace) {
  FakeSession& s = cluster_.Open("a");
  Fill(s);
  Plan(s, {0, 1});
  EXPECT_EQ(s.plans, 0);
  cluster_.Advance(absl::Seconds(10));
  Progress(s);
  EXPECT_EQ(s.plans, 0);
  EXPECT_THAT(cluster_.plan_tasks, SizeIs(0));
}

}  // namespace
}  // namespace mets::core
