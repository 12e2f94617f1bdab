#include "daemon/core/steps/step_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using steps::AccessKind;
using ::testing::HasSubstr;

// Four ops at 0, 10, 20 and 30 ms of 40. Buffer 0 persists and is used by the
// first and the last op; buffer 1 lives between the second and the third.
StepSeen Step(SessionId session = SessionId(1)) {
  StepSeen seen;
  seen.session = session;
  seen.part.signature = 77;
  seen.part.duration = absl::Milliseconds(40);
  seen.part.buffers = {{MiB(4), true}, {MiB(8), false}};
  seen.part.ops.resize(4);
  for (int i = 0; i < 4; ++i) {
    seen.part.ops[i].start = absl::Milliseconds(10 * i);
    seen.part.ops[i].busy = absl::Milliseconds(10);
  }
  seen.part.ops[0].accesses = {{0, AccessKind::kRead}};
  seen.part.ops[1].accesses = {{1, AccessKind::kNew}};
  seen.part.ops[2].accesses = {{1, AccessKind::kRead}};
  seen.part.ops[2].frees = {1};
  seen.part.ops[3].accesses = {{0, AccessKind::kWrite}};
  return seen;
}

StepProgress Progress(int since_begin_ms, uint64_t signature = 77) {
  StepProgress progress;
  progress.session = SessionId(1);
  progress.signature = signature;
  progress.steps = 9;
  progress.duration = absl::Milliseconds(40);
  progress.since_begin = absl::Milliseconds(since_begin_ms);
  return progress;
}

absl::Time At(int ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

TEST(StepBookTest, NextUseFollowsTheProgram) {
  StepBook book;
  EXPECT_EQ(book.Take(Step()), "");
  EXPECT_EQ(book.Take(At(1000), Progress(5)), "");
  ASSERT_NE(book.program(), nullptr);
  EXPECT_EQ(book.steps(), 9);
  EXPECT_EQ(book.NextUse(1, At(1000)), At(1025));
  EXPECT_EQ(book.NextUse(2, At(1000)), At(1005));
  EXPECT_EQ(book.NextUse(2, At(1010)), At(1015));
  // Around the step's end, also some steps later.
  EXPECT_EQ(book.NextUse(1, At(1027)), At(1035));
  EXPECT_EQ(book.NextUse(2, At(1027)), At(1045));
  EXPECT_EQ(book.NextUse(2, At(1427)), At(1445));
}

TEST(StepBookTest, NothingIsKnownOfWhatTheStepDoesNotName) {
  StepBook book;
  EXPECT_EQ(book.NextUse(1, At(0)), absl::InfiniteFuture());
  EXPECT_EQ(book.Take(Step()), "");
  EXPECT_EQ(book.NextUse(1, At(0)), absl::InfiniteFuture());
  EXPECT_EQ(book.Take(At(1), Progress(5)), "");
  EXPECT_NE(book.NextUse(1, At(2)), absl::InfiniteFuture());
  EXPECT_EQ(book.NextUse(0, At(2)), absl::InfiniteFuture());
  EXPECT_EQ(book.NextUse(3, At(2)), absl::InfiniteFuture());
  EXPECT_EQ(book.NextUse(UINT32_MAX, At(2)), absl::InfiniteFuture());
}

TEST(StepBookTest, StepEndsWhenTheClientSaysSoOrIsSilent) {
  StepBook book;
  EXPECT_EQ(book.Take(Step()), "");
  EXPECT_EQ(book.Take(At(0), Progress(5)), "");
  EXPECT_NE(book.NextUse(1, At(5000)), absl::InfiniteFuture());
  EXPECT_EQ(book.NextUse(1, At(6000)), absl::InfiniteFuture());
  EXPECT_EQ(book.Take(At(7000), Progress(5)), "");
  EXPECT_NE(book.NextUse(1, At(7000)), absl::InfiniteFuture());
  EXPECT_EQ(book.Take(At(7001), Progress(5, 78)), "");
  EXPECT_EQ(book.program(), nullptr);
  EXPECT_EQ(book.NextUse(1, At(7002)), absl::InfiniteFuture());
  EXPECT_EQ(book.Take(At(7003), Progress(5)), "");
  EXPECT_NE(book.program(), nullptr);
  book.Forget();
  EXPECT_EQ(book.program(), nullptr);
  EXPECT_EQ(book.steps(), 9);
}

TEST(StepBookTest, RepetitionThatTakesLongerIsAtItsEnd) {
  StepBook book;
  EXPECT_EQ(book.Take(Step()), "");
  EXPECT_EQ(book.Take(At(0), Progress(100)), "");
  EXPECT_EQ(book.NextUse(1, At(3)), At(3));
  EXPECT_EQ(book.NextUse(2, At(3)), At(13));
}

TEST(StepBookTest, PartsFollowOneAnother) {
  const StepSeen whole = Step();
  StepSeen first = whole, second = whole;
  first.part.ops.resize(1);
  first.part.buffers.resize(1);
  first.last = false;
  second.part.ops.erase(second.part.ops.begin());
  second.part.buffers.erase(second.part.buffers.begin());
  second.first = false;
  StepBook book;
  EXPECT_EQ(book.Take(At(0), Progress(5)), "");
  EXPECT_EQ(book.Take(first), "");
  EXPECT_EQ(book.program(), nullptr);
  EXPECT_EQ(book.Take(second), "");
  ASSERT_NE(book.program(), nullptr);
  EXPECT_EQ(book.program()->ops.size(), 4u);
  EXPECT_EQ(book.program()->buffers.size(), 2u);
  EXPECT_EQ(book.NextUse(2, At(0)), At(5));
}

TEST(StepBookTest, WhatCannotBeTrueIsNamed) {
  const auto fault = [](const std::function<void(StepSeen*)>& change) {
    StepBook book;
    StepSeen seen = Step();
    change(&seen);
    return book.Take(seen);
  };
  EXPECT_THAT(fault([](StepSeen* s) { s->part.signature = 0; }),
              HasSubstr("signature"));
  EXPECT_THAT(fault([](StepSeen* s) { s->first = false; }),
              HasSubstr("first part"));
  EXPECT_THAT(fault([](StepSeen* s) { s->part.duration = -absl::Seconds(1); }),
              HasSubstr("duration"));
  EXPECT_THAT(fault([](StepSeen* s) { s->part.buffers[0].size = Bytes(); }),
              HasSubstr("size"));
  EXPECT_THAT(fault([](StepSeen* s) { s->part.buffers[0].size = Bytes(-1); }),
              HasSubstr("size"));
  EXPECT_THAT(fault([](StepSeen* s) { s->part.ops[0].accesses[0].buffer = 2; }),
              HasSubstr("unknown buffer"));
  EXPECT_THAT(fault([](StepSeen* s) { s->part.ops[2].frees[0] = 99; }),
              HasSubstr("unknown buffer"));
  EXPECT_THAT(
      fault([](StepSeen* s) { std::swap(s->part.ops[0], s->part.ops[1]); }),
      HasSubstr("impossible time"));
  EXPECT_THAT(
      fault([](StepSeen* s) { s->part.ops.resize(StepBook::kMostOps + 1); }),
      HasSubstr("131073 ops"));
  EXPECT_THAT(
      fault([](StepSeen* s) { s->part.ops[0].accesses.resize(3 << 20); }),
      HasSubstr("accesses"));
}

TEST(StepBookTest, PartsCannotAddUpToMoreThanTheBounds) {
  StepBook book;
  StepSeen seen = Step();
  seen.last = false;
  seen.part.ops.resize(1);
  seen.part.ops[0].accesses.resize(1 << 19);
  EXPECT_EQ(book.Take(seen), "");
  seen.first = false;
  std::string fault;
  for (int i = 0; i < 8 && fault.empty(); ++i) fault = book.Take(seen);
  EXPECT_THAT(fault, HasSubstr("accesses"));
}

class StepIntakeTest : public ::testing::Test {
 protected:
  FakeCluster cluster_{FakeCluster::Config(MiB(64), MiB(64))};
};

TEST_F(StepIntakeTest, StatusShowsStepsOfAJob) {
  FakeSession& a = cluster_.Open("a");
  StepProgress progress = Progress(5);
  progress.session = a.id;
  a.totals.steps = 9;
  cluster_.Send(a, Step(a.id));
  cluster_.Send(a, progress);
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_FALSE(a.refused);
  const Status status = cluster_.core().GetStatus();
  ASSERT_EQ(status.jobs.size(), 1u);
  EXPECT_EQ(status.jobs[0].totals.steps, 9);
  EXPECT_EQ(status.jobs[0].step_duration, absl::Milliseconds(40));
}

TEST_F(StepIntakeTest, ImpossibleStepRefusesTheSession) {
  FakeSession& a = cluster_.Open("a");
  StepSeen seen = Step(a.id);
  seen.part.ops[0].accesses[0].buffer = 1000;
  cluster_.Send(a, seen);
  cluster_.Pump();
  EXPECT_TRUE(a.refused);
  EXPECT_THAT(a.refusal, HasSubstr("unknown buffer"));
}

TEST_F(StepIntakeTest, ImpossiblePlaceRefusesTheSession) {
  FakeSession& a = cluster_.Open("a");
  StepProgress progress = Progress(5);
  progress.session = a.id;
  progress.steps = -1;
  cluster_.Send(a, progress);
  cluster_.Pump();
  EXPECT_TRUE(a.refused);
}

// The policy goes by next uses, and those of the step's buffers are known.
TEST_F(StepIntakeTest, BufferThatTheStepUsesLastLeavesFirst) {
  FakeCluster cluster{FakeCluster::Config(MiB(32), MiB(64)), "next_use"};
  FakeSession& a = cluster.Open("a");
  std::vector<BufferId> ids;
  BufferChanges changes;
  for (uint32_t i = 0; i < 4; ++i) {
    ids.push_back(cluster.Alloc(a, MiB(8)));
    cluster.Pump();
    BufferReport report;
    report.id = ids.back();
    report.size = MiB(8);
    report.logical = 1 + i;
    changes.buffers.push_back(report);
  }
  // Op i uses buffer i.
  StepSeen seen = Step(a.id);
  seen.part.buffers.assign(4, {MiB(8), true});
  for (uint32_t i = 0; i < 4; ++i) {
    seen.part.ops[i].accesses = {{i, AccessKind::kRead}};
    seen.part.ops[i].frees.clear();
  }
  StepProgress progress = Progress(15);  // Buffer 1 was used last.
  progress.session = changes.session = a.id;
  cluster.Send(a, seen);
  cluster.Send(a, progress);
  cluster.Send(a, changes);
  cluster.Pump();
  cluster.Alloc(cluster.Open("b"), MiB(8));
  cluster.Pump();
  EXPECT_EQ(a.evicted, 1);
  EXPECT_FALSE(a.buffers[ids[1]].resident);
}

}  // namespace
}  // namespace mets::core
