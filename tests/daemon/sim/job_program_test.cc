#include "daemon/sim/job_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/check.h"

namespace mets::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using trace::EventKind;

class JobProgramTest : public ::testing::Test {
 protected:
  void Add(double ms, EventKind kind, uint64_t id, Bytes bytes = Bytes()) {
    trace_.events.push_back({absl::Milliseconds(ms), kind, id, bytes, 0});
  }
  JobProgram Make(const ProgramOptions& options = {}) {
    auto program = MakeJobProgram(trace_, options);
    METS_CHECK_OK(program);
    return *std::move(program);
  }

  trace::Trace trace_;
};

TEST_F(JobProgramTest, EventsWithinAnOpAreItsOwn) {
  Add(0, EventKind::kAlloc, 1, MiB(1));
  Add(10, EventKind::kBegin, 7);
  Add(10, EventKind::kRead, 1, MiB(1));
  Add(11, EventKind::kAlloc, 2, MiB(2));
  Add(15, EventKind::kEnd, 7);
  Add(16, EventKind::kFree, 1, MiB(1));
  Add(20, EventKind::kBegin, 8);
  Add(20, EventKind::kWrite, 2, MiB(2));
  Add(30, EventKind::kEnd, 8);
  const JobProgram program = Make();
  EXPECT_THAT(program.buffers, ElementsAre(MiB(1), MiB(2)));
  EXPECT_EQ(program.peak, MiB(3));
  ASSERT_THAT(program.ops, SizeIs(3));
  // Allocated outside of ops.
  EXPECT_THAT(program.ops[0].accesses, SizeIs(1));
  EXPECT_DOUBLE_EQ(program.ops[0].busy, 0);
  const JobOp& op = program.ops[1];
  ASSERT_THAT(op.accesses, SizeIs(2));
  EXPECT_EQ(op.accesses[0].kind, steps::AccessKind::kRead);
  EXPECT_EQ(op.accesses[1].kind, steps::AccessKind::kNew);
  EXPECT_THAT(op.frees, ElementsAre(0));
  EXPECT_DOUBLE_EQ(op.gap, 0.010);
  EXPECT_DOUBLE_EQ(op.busy, 0.005);
  EXPECT_DOUBLE_EQ(program.ops[2].gap, 0.005);
  EXPECT_DOUBLE_EQ(program.ops[2].busy, 0.010);
  EXPECT_DOUBLE_EQ(program.seconds, 0.030);
}

TEST_F(JobProgramTest, OpsThatOverlapFollowOneAnother) {
  Add(0, EventKind::kAlloc, 1, MiB(1));
  Add(0, EventKind::kBegin, 7);
  Add(0, EventKind::kRead, 1, MiB(1));
  Add(4, EventKind::kBegin, 8);
  Add(6, EventKind::kEnd, 7);
  Add(10, EventKind::kEnd, 8);
  const JobProgram program = Make();
  ASSERT_THAT(program.ops, SizeIs(3));
  EXPECT_DOUBLE_EQ(program.ops[1].busy, 0.006);
  EXPECT_DOUBLE_EQ(program.ops[2].gap, 0);
  EXPECT_DOUBLE_EQ(program.ops[2].busy, 0.004);
}

TEST_F(JobProgramTest, SmallAllocationsAreOnlyCounted) {
  Add(0, EventKind::kAlloc, 1, MiB(1));
  Add(0, EventKind::kAlloc, 2, KiB(4));
  Add(1, EventKind::kAlloc, 3, KiB(8));
  Add(2, EventKind::kFree, 2, KiB(4));
  Add(3, EventKind::kRead, 1, MiB(1));
  Add(3, EventKind::kRead, 3, KiB(8));
  const JobProgram program = Make();
  EXPECT_EQ(program.small_peak, KiB(12));
  EXPECT_THAT(program.buffers, ElementsAre(MiB(1)));
}

TEST_F(JobProgramTest, WithoutOpsAReadBehindAWriteBeginsOne) {
  Add(0, EventKind::kAlloc, 1, MiB(1));
  Add(1, EventKind::kWrite, 1, MiB(1));
  Add(2, EventKind::kRead, 1, MiB(1));
  Add(3, EventKind::kWrite, 1, MiB(1));
  Add(4, EventKind::kRead, 1, MiB(1));
  const JobProgram program = Make();
  EXPECT_THAT(program.ops, SizeIs(3));
}

TEST_F(JobProgramTest, WithoutOpsAWriteRightBeforeTheFreeIsNoUse) {
  Add(0, EventKind::kAlloc, 1, MiB(1));
  Add(1, EventKind::kWrite, 1, MiB(1));
  Add(2, EventKind::kRead, 1, MiB(1));
  Add(3, EventKind::kWrite, 1, MiB(1));
  Add(4, EventKind::kFree, 1, MiB(1));
  const JobProgram program = Make();
  ASSERT_THAT(program.ops, SizeIs(2));
  ASSERT_THAT(program.ops[1].accesses, SizeIs(1));
  EXPECT_EQ(program.ops[1].accesses[0].kind, steps::AccessKind::kRead);
  EXPECT_THAT(program.ops[1].frees, ElementsAre(0));
}

TEST_F(JobProgramTest, TheRecordersOwnFlushesAreTakenOff) {
  Add(0, EventKind::kAlloc, 1, MiB(1));
  for (int i = 1; i < 2000; ++i) Add(i * 0.01, EventKind::kWrite, 1, MiB(1));
  // The 2,000th event comes after SINGA has written its buffer out.
  Add(5000, EventKind::kRead, 1, MiB(1));
  Add(5001, EventKind::kWrite, 1, MiB(1));
  EXPECT_LT(Make().seconds, 0.1);
}

TEST_F(JobProgramTest, AllocationsAloneAreWrittenAndReadOnce) {
  Add(0, EventKind::kAlloc, 1, MiB(1));
  Add(5, EventKind::kFree, 1, MiB(1));
  const JobProgram program = Make();
  ASSERT_THAT(program.ops, SizeIs(2));
  EXPECT_EQ(program.ops[0].accesses[0].kind, steps::AccessKind::kNew);
  EXPECT_EQ(program.ops[1].accesses[0].kind, steps::AccessKind::kRead);
  EXPECT_THAT(program.ops[1].frees, ElementsAre(0));
}

TEST_F(JobProgramTest, AcceleratedOpsTakeAtLeastTheirBytesTime) {
  Add(0, EventKind::kAlloc, 1, MiB(100));
  Add(0, EventKind::kBegin, 7);
  Add(0, EventKind::kRead, 1, MiB(100));
  Add(1, EventKind::kEnd, 7);
  ProgramOptions options;
  options.speedup = 1e6;
  const JobProgram program = Make(options);
  ASSERT_THAT(program.ops, SizeIs(2));
  EXPECT_EQ(program.ops[0].busy, 0);  // The allocation, outside of any op.
  EXPECT_DOUBLE_EQ(program.ops[1].busy,
                   double{MiB(100).count()} / options.memory_bandwidth);
}

TEST_F(JobProgramTest, ATraceWithoutBuffersIsRefused) {
  Add(0, EventKind::kAlloc, 1, KiB(1));
  const auto program = MakeJobProgram(trace_, {});
  EXPECT_TRUE(absl::IsInvalidArgument(program.status()));
}

}  // namespace
}  // namespace mets::sim
