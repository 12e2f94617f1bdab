#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;

std::vector<BufferId> Fill(FakeCluster& cluster, FakeSession& s, int count) {
  std::vector<BufferId> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(cluster.Alloc(s, MiB(8)));
    cluster.Advance(absl::Milliseconds(10));
    cluster.Report(s);
    cluster.Pump();
  }
  return ids;
}

TEST(SwapTest, FullSwapSpaceMakesRequestsWaitAndIsTheReasonGiven) {
  FakeCluster cluster(FakeCluster::Config(MiB(32), MiB(16)));
  FakeSession& a = cluster.Open("a");
  Fill(cluster, a, 6);
  EXPECT_EQ(a.evicted, 2);
  cluster.Alloc(a, MiB(8), absl::Seconds(1));
  cluster.Advance(absl::Seconds(2));
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_THAT(a.denials[0].reason, HasSubstr("swap space is full"));
  EXPECT_THAT(a.denials[0].advice, HasSubstr("--swap-space"));
}

TEST(SwapTest, WithoutSwapSpaceNothingLeaves) {
  FakeCluster cluster(FakeCluster::Config(MiB(32), Bytes()));
  FakeSession& a = cluster.Open("a");
  Fill(cluster, a, 4);
  cluster.Alloc(a, MiB(8), absl::Seconds(1));
  cluster.Advance(absl::Seconds(2));
  EXPECT_EQ(a.denials.size(), 1u);
  EXPECT_EQ(a.evicted, 0);
}

TEST(SwapTest, CleanSlotsAreReclaimedWhenSwapSpaceIsFull) {
  FakeCluster cluster(FakeCluster::Config(MiB(32), MiB(24)));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b");
  const auto as = Fill(cluster, a, 4);
  const auto bs = Fill(cluster, b, 3);  // as[0..2] leave.
  ASSERT_EQ(a.evicted, 3);
  for (BufferId id : bs) cluster.Free(b, id, false);
  cluster.Report(b);
  for (int i = 0; i < 3; ++i) cluster.Touch(a, as[i], false);
  cluster.Pump();
  cluster.Advance(absl::Milliseconds(10));
  cluster.Report(a);
  cluster.Pump();
  EXPECT_EQ(cluster.device().swap_clean, MiB(24));
  // as[3] is the least recently used, and dirty: a clean slot gives way.
  Fill(cluster, b, 1);
  cluster.Report(a);
  cluster.Pump();
  EXPECT_FALSE(a.buffers[as[3]].resident);
  EXPECT_EQ(cluster.device().swap_used, MiB(8));
  EXPECT_EQ(cluster.device().swap_clean, MiB(16));
  for (BufferId id : as) cluster.Touch(a, id, false);
  cluster.Advance(absl::Seconds(1));
}

TEST(SwapTest, EmptyExtentsGoToTheDomainThatNeedsThem) {
  FakeCluster cluster(FakeCluster::Config(MiB(32), MiB(32)));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b", {2});
  const auto as = Fill(cluster, a, 6);
  EXPECT_EQ(a.evicted, 2);
  for (BufferId id : as) cluster.Free(a, id, false);
  cluster.Report(a);
  cluster.Pump();
  EXPECT_EQ(cluster.device().swap_used, Bytes());
  EXPECT_EQ(a.extents.size(), 1u);
  Fill(cluster, b, 6);
  cluster.Advance(absl::Seconds(1));
  EXPECT_EQ(b.buffers.size(), 6u);
  EXPECT_EQ(b.evicted, 2);
  EXPECT_TRUE(a.extents.empty());
}

TEST(SwapTest, TwoDomainsThatNeedSeveralExtentsEachGetThemInTurn) {
  CoreConfig config = FakeCluster::Config(MiB(32), MiB(16));
  config.extent_size = MiB(8);
  FakeCluster cluster(config);
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b", {2});
  FakeSession& c = cluster.Open("c");
  cluster.Alloc(a, MiB(16));
  cluster.Advance(absl::Milliseconds(10));
  cluster.Report(a);
  cluster.Alloc(b, MiB(16));
  cluster.Pump();
  cluster.Report(b);
  cluster.Alloc(c, MiB(16));
  cluster.Advance(absl::Seconds(2));
  EXPECT_EQ(c.buffers.size(), 1u);
}

TEST(SwapTest, ExtentsGrowAndNeverExceedTheLimit) {
  FakeCluster cluster(FakeCluster::Config(MiB(32), MiB(200)));
  FakeSession& a = cluster.Open("a");
  Fill(cluster, a, 4 + 25);  // 200 MiB swapped.
  EXPECT_EQ(a.buffers.size(), 29u);
  EXPECT_EQ(a.evicted, 25);
  EXPECT_EQ(a.extents.size(), 3u);  // 64 + 64 + 72 MiB.
  EXPECT_EQ(cluster.device().swap_used, MiB(200));
}

TEST(SwapTest, SeveralExtentsAreMadeAtOnce) {
  CoreConfig config = FakeCluster::Config(MiB(128), MiB(512));
  config.extent_size = MiB(16);
  FakeCluster cluster(config);
  FakeSession& a = cluster.Open("a");
  Fill(cluster, a, 16);
  cluster.manual_memory = true;
  cluster.Alloc(a, MiB(128));
  cluster.Pump();
  EXPECT_EQ(cluster.WaitingMemoryActions(), 4u);
  cluster.manual_memory = false;
  cluster.Advance(absl::Milliseconds(50));
  EXPECT_EQ(a.evicted, 16);
}

TEST(SwapTest, AnExtentThatCannotBeCreatedIsTriedAgain) {
  FakeCluster cluster(FakeCluster::Config(MiB(32), MiB(64)));
  FakeSession& a = cluster.Open("a");
  Fill(cluster, a, 4);
  cluster.failing_creations = 1;
  cluster.Alloc(a, MiB(8), absl::Milliseconds(500));
  cluster.Advance(absl::Milliseconds(600));
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_THAT(a.denials[0].reason, HasSubstr("no such memory"));
  cluster.Alloc(a, MiB(8));
  cluster.Advance(absl::Seconds(2));
  EXPECT_EQ(a.buffers.size(), 5u);
}

TEST(SwapTest, ADirtyReportFreesTheSlot) {
  FakeCluster cluster(FakeCluster::Config(MiB(32), MiB(64)));
  FakeSession& a = cluster.Open("a");
  const auto as = Fill(cluster, a, 5);
  ASSERT_FALSE(a.buffers[as[0]].resident);
  cluster.Free(a, as[4], false);
  cluster.Touch(a, as[0], false);
  cluster.Pump();
  cluster.Touch(a, as[0], true);
  cluster.Report(a);
  cluster.Pump();
  EXPECT_EQ(cluster.device().swap_used, Bytes());
  EXPECT_EQ(cluster.device().swap_clean, Bytes());
}

}  // namespace
}  // namespace mets::core
