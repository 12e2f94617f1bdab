#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

class RecoveryTest : public ::testing::Test {
 protected:
  // Two jobs with 32 and 24 MiB resident; a has 16 MiB swapped.
  void SetUp() override {
    a_ = &cluster_.Open("a");
    b_ = &cluster_.Open("b");
    for (int i = 0; i < 6; ++i) {
      cluster_.Alloc(*a_, MiB(8));
      cluster_.Advance(absl::Milliseconds(10));
    }
    cluster_.Report(*a_);
    for (int i = 0; i < 3; ++i) cluster_.Alloc(*b_, MiB(8));
    cluster_.Advance(absl::Milliseconds(10));
    cluster_.Report(*a_);
    cluster_.Report(*b_);
    cluster_.Pump();
    ASSERT_EQ(a_->evicted, 1);
  }

  const CoreConfig config_ = FakeCluster::Config(MiB(64), MiB(256));
  FakeCluster cluster_{config_};
  FakeSession* a_ = nullptr;
  FakeSession* b_ = nullptr;
};

TEST_F(RecoveryTest, RecordedBytesAreReservedUntilTheirSessionsAreBack) {
  cluster_.RestartCore(config_);
  EXPECT_EQ(cluster_.device().orphan, MiB(64));
  EXPECT_EQ(cluster_.device().free, Bytes());
  cluster_.Return(*a_);
  cluster_.Return(*b_);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().orphan, MiB(64));
  EXPECT_EQ(cluster_.job("a").resident, MiB(40));
  EXPECT_EQ(cluster_.job("b").resident, MiB(24));
}

TEST_F(RecoveryTest, NothingIsGrantedUntilEverySessionIsBackOrGone) {
  cluster_.Free(*b_, BufferId(1), false);
  cluster_.Pump();
  cluster_.RestartCore(config_);
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(c, MiB(8));
  cluster_.Return(*a_);
  cluster_.Pump();
  EXPECT_TRUE(c.buffers.empty());
  cluster_.Step(ExpectedSessionGone{b_->id});
  b_->alive = false;
  b_->buffers.clear();
  cluster_.Pump();
  EXPECT_EQ(c.buffers.size(), 1u);
  EXPECT_EQ(cluster_.device().orphan, MiB(40));
}

TEST_F(RecoveryTest, WhatOperatorsHaveSaidHolds) {
  cluster_.Step(DrainDevice{"host0", true, 1});
  cluster_.Step(PauseJob{"a", true, 2});
  cluster_.Step(SetJobLimit{"b", MiB(32), 3});
  cluster_.RestartCore(config_);
  cluster_.Return(*a_);
  cluster_.Return(*b_);
  cluster_.Pump();
  EXPECT_EQ(a_->ready.back().error, "");
  EXPECT_EQ(b_->ready.back().error, "");
  EXPECT_NE(cluster_.Open("c").ready.back().error, "");
  EXPECT_FALSE(a_->gate.open);
  EXPECT_EQ(cluster_.job("b").limit, MiB(32));
  // Of no job that begins later.
  cluster_.Kill(*b_);
  cluster_.Step(DrainDevice{"host0", false, 4});
  cluster_.Open("b", {1, MiB(48)});
  EXPECT_EQ(cluster_.job("b").limit, MiB(48));
}

TEST_F(RecoveryTest, AfterTheGracePeriodTheRestIsGranted) {
  cluster_.Free(*b_, BufferId(1), false);
  cluster_.Pump();
  cluster_.RestartCore(config_);
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(c, MiB(8));
  cluster_.Advance(absl::Milliseconds(4900));
  EXPECT_TRUE(c.buffers.empty());
  cluster_.Advance(absl::Milliseconds(200));
  EXPECT_EQ(c.buffers.size(), 1u);
  EXPECT_EQ(cluster_.device().orphan, MiB(56));
}

TEST_F(RecoveryTest, OrphansLeaveByEvictionAndThePoolRegrows) {
  cluster_.RestartCore(config_);
  cluster_.Return(*a_);
  cluster_.Return(*b_);
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(c, MiB(32));
  cluster_.Advance(absl::Seconds(1));
  EXPECT_EQ(c.buffers.size(), 1u);
  EXPECT_EQ(cluster_.device().orphan, MiB(32));
  EXPECT_EQ(cluster_.created(), MiB(32));
  cluster_.Report(*a_);
  cluster_.Report(*b_);
  cluster_.Report(c);
  cluster_.Pump();
  // And everybody finds their bytes again, old slots and new.
  for (FakeSession* s : {a_, b_}) {
    for (auto& [id, buffer] : s->buffers) {
      cluster_.Touch(*s, id, false);
      cluster_.Advance(absl::Seconds(1));
      EXPECT_TRUE(buffer.resident);
      cluster_.Report(*s);
      cluster_.Pump();
    }
  }
}

TEST_F(RecoveryTest, ASmallerPoolCreatesNothingUntilOrphansAreBelowIt) {
  CoreConfig smaller = FakeCluster::Config(MiB(32), MiB(256));
  cluster_.RestartCore(smaller);
  cluster_.Return(*a_);
  cluster_.Return(*b_);
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(c, MiB(8));
  cluster_.Advance(absl::Seconds(2));
  EXPECT_EQ(c.buffers.size(), 1u);
  EXPECT_LE(cluster_.created() + cluster_.device().orphan, MiB(32));
}

TEST_F(RecoveryTest, ASecondRestartStillKnowsTheRecords) {
  cluster_.RestartCore(config_);
  const Status status = cluster_.core().GetStatus();
  ASSERT_EQ(status.sessions.size(), 2u);
  EXPECT_EQ(status.sessions[0].held[0].second, MiB(40));
  EXPECT_EQ(status.sessions[0].job, "a");
}

TEST_F(RecoveryTest, AProcessCannotComeBackAsAnotherJob) {
  cluster_.RestartCore(config_);
  a_->job = "thief";
  cluster_.Return(*a_);
  cluster_.Pump();
  EXPECT_TRUE(a_->refused);
  EXPECT_EQ(cluster_.device().orphan, MiB(64));
}

TEST_F(RecoveryTest, ASessionWithoutARecordCountsFromItsSnapshot) {
  cluster_.RestartCore(config_);
  cluster_.Step(ExpectedSessionGone{a_->id});  // Its record was lost.
  EXPECT_EQ(cluster_.device().orphan, MiB(24));
  cluster_.Return(*a_);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().orphan, MiB(64));
  EXPECT_EQ(cluster_.job("a").resident, MiB(40));
}

}  // namespace
}  // namespace mets::core
