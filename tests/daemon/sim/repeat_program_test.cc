#include "daemon/sim/repeat_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::sim {
namespace {

using steps::AccessKind;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Ne;
using ::testing::SizeIs;

JobOp Op(double busy, std::vector<steps::Access> accesses,
         std::vector<uint32_t> frees = {}) {
  JobOp op;
  op.busy = busy;
  op.accesses = std::move(accesses);
  op.frees = std::move(frees);
  return op;
}

// A weight that stays, an input that is replaced, an activation.
JobProgram Step() {
  JobProgram program;
  program.buffers = {MiB(1), MiB(2), MiB(8), MiB(2)};
  program.ops = {Op(0, {{0, AccessKind::kNew}}), Op(0, {{1, AccessKind::kNew}}),
                 Op(1,
                    {{0, AccessKind::kRead},
                     {1, AccessKind::kRead},
                     {2, AccessKind::kNew}},
                    {1}),
                 Op(1, {{2, AccessKind::kRead}, {3, AccessKind::kNew}}, {2})};
  program.seconds = 2;
  return program;
}

TEST(RepeatProgramTest, OnceIsTheProgram) {
  EXPECT_THAT(RepeatProgram(Step(), 1).ops, SizeIs(4));
}

TEST(RepeatProgramTest, BuffersGoOnWhereTheyHaveAPartner) {
  const JobProgram program = RepeatProgram(Step(), 3);
  ASSERT_THAT(program.ops, SizeIs(4 + 2 + 2));
  EXPECT_EQ(program.seconds, 6);
  EXPECT_THAT(program.repeats, ElementsAre(4, 6));
  // Activations and inputs are new, the weight is not.
  EXPECT_THAT(program.buffers, SizeIs(4 + 2 + 2));
  const JobOp& second = program.ops[4];
  EXPECT_EQ(second.accesses[0].buffer, 0u);
  EXPECT_EQ(second.accesses[1].buffer, 3u);
  EXPECT_EQ(program.buffers[second.accesses[2].buffer], MiB(8));
  EXPECT_THAT(second.frees, ElementsAre(3));
  const JobOp& third = program.ops[6];
  EXPECT_EQ(third.accesses[1].buffer, program.ops[5].accesses[1].buffer);
}

TEST(RepeatProgramTest, WhatHasNoPartnerIsFreedOrAllocatedBetween) {
  JobProgram step = Step();
  step.buffers[3] = MiB(3);
  const JobProgram program = RepeatProgram(step, 2);
  ASSERT_THAT(program.ops, SizeIs(4 + 1 + 2));
  EXPECT_THAT(program.ops[3].frees, ElementsAre(2, 3));
  ASSERT_THAT(program.ops[4].accesses, SizeIs(1));
  EXPECT_EQ(program.ops[4].accesses[0].kind, AccessKind::kNew);
  EXPECT_EQ(program.ops[5].accesses[1].buffer,
            program.ops[4].accesses[0].buffer);
}

TEST(RepeatProgramTest, WhatNothingUsesIsNeverThere) {
  JobProgram step = Step();
  step.buffers.push_back(MiB(5));
  const JobProgram program = RepeatProgram(step, 3);
  EXPECT_THAT(program.buffers, SizeIs(5 + 2 + 2));
  for (const JobOp& op : program.ops) {
    EXPECT_THAT(op.frees, Each(AllOf(Ne(4u), Lt(program.buffers.size()))));
  }
}

// Two weights of one size that each step replaces, in the order in which it
// does not meet them first.
TEST(RepeatProgramTest, WhatIsFreedFirstIsReplacedFirst) {
  JobProgram step;
  step.buffers.assign(4, MiB(4));
  step.ops = {Op(0, {{0, AccessKind::kNew}}), Op(0, {{1, AccessKind::kNew}}),
              Op(1, {{0, AccessKind::kRead}}),
              Op(1, {{1, AccessKind::kWrite}, {2, AccessKind::kNew}}, {1}),
              Op(1, {{0, AccessKind::kWrite}, {3, AccessKind::kNew}}, {0})};
  const JobProgram program = RepeatProgram(step, 2);
  ASSERT_THAT(program.ops, SizeIs(5 + 3));
  EXPECT_EQ(program.ops[5].accesses[0].buffer, 3u);
  EXPECT_EQ(program.ops[6].accesses[0].buffer, 2u);
}

}  // namespace
}  // namespace mets::sim
