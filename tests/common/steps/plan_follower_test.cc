#include "common/steps/plan_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace mets::steps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Six ops. Buffer 0 is allocated by op 0, used by ops 1 and 4, and freed; 1
// persists and is used by ops 0 and 2; 2 persists and is used by none.
StepProgram Program() {
  StepProgram program;
  program.buffers = {{MiB(1), false}, {MiB(1), true}, {MiB(1), true}};
  program.ops.resize(6);
  program.ops[0].accesses = {{0, AccessKind::kNew}, {1, AccessKind::kRead}};
  program.ops[1].accesses = {{0, AccessKind::kRead}, {0, AccessKind::kWrite}};
  program.ops[4].accesses = {{0, AccessKind::kRead}};
  program.ops[4].frees = {0};
  program.ops[2].accesses = {{1, AccessKind::kWrite}};
  return program;
}

Absence Away(uint32_t buffer, uint32_t evict_after, uint32_t restore_at,
             uint32_t use) {
  Absence absence;
  absence.buffer = buffer;
  absence.evict_after = evict_after;
  absence.restore_at = restore_at;
  absence.use = use;
  return absence;
}

class PlanFollowerTest : public ::testing::Test {
 protected:
  PlanMoves Begin(uint32_t position, bool boundary = false) {
    PlanMoves moves;
    follower_->Begin(position, boundary, &moves);
    return moves;
  }
  PlanMoves Used(uint32_t buffer, bool fresh = false) {
    PlanMoves moves;
    follower_->Used(buffer, fresh, &moves);
    return moves;
  }
  void Follow(std::vector<Absence> absences) {
    StepPlan plan;
    plan.absences = std::move(absences);
    follower_.emplace(Program(), plan);
  }

  std::optional<PlanFollower> follower_;
};

TEST_F(PlanFollowerTest, ABufferLeavesAfterItsUseAndReturnsWhereThePlanSays) {
  Follow({Away(0, 1, 3, 4)});
  EXPECT_THAT(Begin(0, true).evict, IsEmpty());
  EXPECT_THAT(Used(0, true).evict, IsEmpty());
  Begin(1);
  EXPECT_THAT(Used(0).evict, ElementsAre(0));
  EXPECT_THAT(Begin(2).restore, IsEmpty());
  EXPECT_THAT(Begin(3).restore, ElementsAre(0));
  EXPECT_THAT(Begin(4).restore, IsEmpty());
  EXPECT_THAT(Used(0).evict, IsEmpty());
}

TEST_F(PlanFollowerTest, EveryRepetitionMovesTheSame) {
  Follow({Away(0, 1, 3, 4)});
  for (int repetition = 0; repetition < 3; ++repetition) {
    Begin(0, true);
    Used(0, true);
    EXPECT_THAT(Used(0).evict, ElementsAre(0));
    EXPECT_THAT(Begin(3).restore, ElementsAre(0));
  }
}

TEST_F(PlanFollowerTest, OpsThatHaveChangedPlacesDoNotEvictTooEarly) {
  Follow({Away(0, 1, 3, 4)});
  Begin(0, true);
  Begin(1);  // Another op than in the program.
  EXPECT_THAT(Used(1).evict, IsEmpty());
  EXPECT_THAT(Used(0, true).evict, IsEmpty());
  EXPECT_THAT(Used(0).evict, ElementsAre(0));
}

TEST_F(PlanFollowerTest, ABufferMayBeAllocatedBeforeItsRepetitionBegins) {
  Follow({Away(0, 1, 3, 4)});
  Begin(0, true);
  Begin(5);
  EXPECT_THAT(Used(0, true).evict, IsEmpty());
  Begin(0, true);
  EXPECT_THAT(Used(0).evict, ElementsAre(0));
}

TEST_F(PlanFollowerTest, AnAbsenceMayGoAroundTheEndOfTheStep) {
  Follow({Away(1, 2, 5, 0)});
  Begin(0, true);
  EXPECT_THAT(Used(1).evict, IsEmpty());
  EXPECT_THAT(Used(1).evict, ElementsAre(1));
  EXPECT_THAT(Begin(4).restore, IsEmpty());
  EXPECT_THAT(Begin(5).restore, ElementsAre(1));
  EXPECT_THAT(Begin(0, true).restore, IsEmpty());
}

TEST_F(PlanFollowerTest, AShortRepetitionReturnsWhatIsLeftAtItsEnd) {
  Follow({Away(0, 1, 3, 4), Away(1, 0, 4, 2)});
  Begin(0, true);
  EXPECT_THAT(Begin(2).restore, IsEmpty());
  EXPECT_THAT(Begin(0, true).restore, ElementsAre(0, 1));
}

TEST_F(PlanFollowerTest, WhatIsNeededFirstReturnsFirst) {
  Follow({Away(0, 1, 3, 4), Away(1, 0, 3, 2)});
  Begin(0, true);
  EXPECT_THAT(Begin(3).restore, ElementsAre(0, 1));
}

TEST_F(PlanFollowerTest, WhatNoOpUsesLeavesWhereTheStepBegins) {
  Absence absence = Away(2, 0, 0, 0);
  absence.returns = false;
  Follow({absence});
  PlanMoves moves = Begin(0, true);
  EXPECT_THAT(moves.evict, ElementsAre(2));
  EXPECT_THAT(moves.restore, IsEmpty());
  EXPECT_THAT(Begin(5).restore, IsEmpty());
}

TEST_F(PlanFollowerTest, NothingMovesBeforeTheFirstBoundary) {
  Follow({Away(0, 1, 3, 4)});
  EXPECT_THAT(Begin(3).restore, IsEmpty());
  EXPECT_THAT(Used(0).evict, IsEmpty());
  EXPECT_THAT(Used(0).evict, IsEmpty());
}

TEST_F(PlanFollowerTest, MovesOfWhatTheProgramHasNotAreLeftOut) {
  Follow({Away(7, 1, 3, 4), Away(0, 9, 3, 4), Away(0, 1, 3, 9)});
  Begin(0, true);
  Used(0);
  EXPECT_THAT(Used(0).evict, IsEmpty());
  EXPECT_THAT(Used(7).evict, IsEmpty());
  EXPECT_THAT(Begin(5).restore, IsEmpty());
}

}  // namespace
}  // namespace mets::steps
