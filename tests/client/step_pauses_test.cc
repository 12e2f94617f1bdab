#include "client/src/step_pauses.h"

#include <gtest/gtest.h>

#include <vector>

namespace mets::client {
namespace {

constexpr int64_t kMs = 1'000'000;

// A program's steps, as a gate sees them.
class StepPausesTest : public testing::Test {
 protected:
  struct Gap {
    uint32_t ops;  // Of the step, behind which it lies.
    int64_t ns;
    bool device = false;  // The program waits for its device.
  };

  // A step of so many ops. Returns behind how many of them a turn would end; 0:
  // it does not end within the step.
  uint32_t Step(uint32_t ops, const std::vector<Gap>& gaps) {
    const uint32_t base = begun_;
    uint32_t ended = 0;
    for (uint32_t op = 1; op <= ops; ++op) {
      begun_ = OpsBehind(begun_, 1);
      const Gap* gap = nullptr;
      for (const Gap& g : gaps) {
        if (g.ops == op) gap = &g;
      }
      const bool ends = begun_ == end_at_;
      if (ends && pauses_.ends_at_pause() && gap != nullptr && gap->device) {
        pauses_.NoteWait(begun_);
        end_at_ = StepPauses::kNever;
      } else if (ends) {
        ended = op;
      }
      if (gap == nullptr) continue;
      pauses_.Note(gap->ns, begun_, OpsApart(base, begun_), begun_ == end_at_,
                   [this] { return live_; });
    }
    end_at_ = pauses_.EndStep(begun_, ops, MiB(16));
    return ended;
  }
  uint32_t Steps(int count, uint32_t ops, const std::vector<Gap>& gaps) {
    uint32_t ended = 0;
    for (int i = 0; i < count; ++i) ended = Step(ops, gaps);
    return ended;
  }

  Bytes live_ = MiB(16);
  uint32_t begun_ = kOpCountMask - 25;  // It wraps around.
  uint32_t end_at_ = StepPauses::kNever;
  StepPauses pauses_;
};

TEST_F(StepPausesTest, ATurnEndsAtThePauseOfThreeSteps) {
  EXPECT_EQ(Step(10, {{4, kMs}}), 0u);
  EXPECT_EQ(Step(10, {{4, kMs}}), 0u);
  EXPECT_EQ(Step(10, {{4, kMs}}), 10u) << "two steps had as many ops";
  EXPECT_EQ(Step(10, {{4, kMs}}), 4u);
  EXPECT_TRUE(pauses_.ends_at_pause());
}

TEST_F(StepPausesTest, TheLongestPauseCounts) {
  EXPECT_EQ(Steps(5, 10, {{3, kMs}, {7, 2 * kMs}}), 7u);
  // Once learnt, it stays, also where the other one is a little longer...
  EXPECT_EQ(Steps(5, 10, {{3, 3 * kMs}, {7, 2 * kMs}}), 7u);
  // ...but not beside one that is much longer.
  EXPECT_EQ(Steps(5, 10, {{3, 30 * kMs}, {7, 2 * kMs}}), 3u);
}

TEST_F(StepPausesTest, ThreadsThatMeetDoNotPause) {
  EXPECT_EQ(Steps(5, 10, {{4, StepPauses::kShortestNs - 1}}), 10u);
  EXPECT_FALSE(pauses_.ends_at_pause());
}

TEST_F(StepPausesTest, WhereMuchLivesNoTurnEnds) {
  live_ = MiB(18);
  EXPECT_EQ(Steps(5, 10, {{4, kMs}}), 10u);
  live_ = MiB(17);
  EXPECT_EQ(Steps(5, 10, {{4, kMs}}), 4u);
}

TEST_F(StepPausesTest, WhereTheProgramWaitsForItsDeviceNoTurnEnds) {
  const std::vector<Gap> gaps = {{3, 8 * kMs, /*device=*/true}, {7, kMs}};
  EXPECT_EQ(Steps(10, 10, gaps), 7u);
  // It does not forget that for a while.
  EXPECT_EQ(Steps(40, 10, gaps), 7u);
}

// As where another thread has just launched something.
TEST_F(StepPausesTest, WhereTheDeviceOnceComputedAPauseIsFoundAgain) {
  EXPECT_EQ(Steps(5, 10, {{4, kMs}}), 4u);
  Step(10, {{4, kMs, /*device=*/true}});
  EXPECT_EQ(Steps(20, 10, {{4, kMs}}), 10u);
  EXPECT_EQ(Steps(60, 10, {{4, kMs}}), 4u);
}

// A step of another length moves the places of all that is to come.
TEST_F(StepPausesTest, AStepOfOtherLengthDoesNotBanAPauseForEver) {
  const std::vector<Gap> gaps = {{8, 8 * kMs, /*device=*/true}, {4, kMs}};
  for (uint32_t other : {6u, 14u, 16u, 31u}) {
    EXPECT_EQ(Steps(80, 10, gaps), 4u);
    Step(other, gaps);
    EXPECT_EQ(Steps(80, 10, gaps), 4u) << "behind a step of " << other;
  }
}

TEST_F(StepPausesTest, LongPausesNeedNotBeBehindExactlyTheSameOps) {
  Step(40, {{2, 25 * kMs}});
  Step(41, {{3, 25 * kMs}});
  EXPECT_TRUE(pauses_.last_long());
  EXPECT_TRUE(pauses_.PausesLong(4));
  EXPECT_FALSE(pauses_.PausesLong(20));
  Step(41, {{30, 25 * kMs}});
  EXPECT_FALSE(pauses_.last_long());
}

}  // namespace
}  // namespace mets::client
