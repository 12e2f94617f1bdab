#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

constexpr absl::Duration kAfter = absl::Seconds(60);

CoreConfig Config() {
  CoreConfig config = FakeCluster::Config(MiB(64), MiB(64));
  config.idle_release = kAfter;
  config.events = true;
  return config;
}

Bytes Returned(const FakeCluster& cluster, const std::string& device) {
  Bytes bytes;
  for (const Event& event : cluster.events) {
    if (event.kind == EventKind::kReturned && event.device == device) {
      bytes += event.bytes;
    }
  }
  return bytes;
}

TEST(IdleReleaseTest, ChunksThatNobodyHasUsedAreDestroyed) {
  FakeCluster cluster(Config());
  FakeSession& a = cluster.Open("a");
  const BufferId left = cluster.Alloc(a, MiB(16));
  const BufferId kept = cluster.Alloc(a, MiB(16));
  cluster.Pump();
  cluster.Free(a, left, false);
  cluster.Pump();
  cluster.Advance(kAfter - absl::Seconds(1));
  EXPECT_EQ(cluster.created(), MiB(32));
  cluster.Advance(absl::Seconds(2));
  EXPECT_EQ(cluster.created(), MiB(16));
  EXPECT_EQ(a.known.size(), a.buffers[kept].chunks.size());
  EXPECT_EQ(Returned(cluster, "host0"), MiB(16));
  // It is made anew when it is wanted.
  cluster.Alloc(a, MiB(32));
  cluster.Pump();
  EXPECT_EQ(cluster.created(), MiB(48));
  EXPECT_TRUE(cluster.core().CheckInvariants().ok());
}

TEST(IdleReleaseTest, WhatIsUsedNowAndThenStays) {
  FakeCluster cluster(Config());
  FakeSession& a = cluster.Open("a");
  for (int minute = 0; minute < 5; ++minute) {
    const BufferId large = cluster.Alloc(a, MiB(32));
    const BufferId small = cluster.Alloc(a, MiB(16));
    cluster.Pump();
    cluster.Free(a, large, false);
    cluster.Free(a, small, false);
    cluster.Advance(kAfter / 2);
  }
  EXPECT_EQ(cluster.created(), MiB(48));
  EXPECT_EQ(Returned(cluster, "host0"), Bytes());
  // The large ones only, from now on.
  for (int minute = 0; minute < 6; ++minute) {
    const BufferId large = cluster.Alloc(a, MiB(32));
    cluster.Pump();
    cluster.Free(a, large, false);
    cluster.Advance(kAfter / 2);
  }
  EXPECT_EQ(cluster.created(), MiB(32));
}

TEST(IdleReleaseTest, ASessionThatDoesNotAnswerKeepsWhatItKnows) {
  FakeCluster cluster(Config());
  FakeSession& a = cluster.Open("a");
  const BufferId buffer = cluster.Alloc(a, MiB(16));
  cluster.Pump();
  cluster.Free(a, buffer, false);
  cluster.Pump();
  cluster.Lose(a);
  cluster.Advance(2 * kAfter);
  EXPECT_EQ(cluster.created(), MiB(16));
  cluster.Resume(a);
  cluster.Advance(2 * kAfter);
  EXPECT_EQ(cluster.created(), Bytes());
}

TEST(IdleReleaseTest, EmptyExtentsAreDestroyedAndFullOnesStay) {
  FakeCluster cluster(Config());
  FakeSession& a = cluster.Open("a");
  std::vector<BufferId> buffers;
  for (int i = 0; i < 6; ++i) {
    buffers.push_back(cluster.Alloc(a, MiB(16)));
    cluster.Report(a);
    cluster.Pump();
  }
  ASSERT_EQ(a.evicted, 2);
  cluster.Advance(3 * kAfter);
  EXPECT_EQ(a.extents.size(), 1u);
  for (BufferId id : buffers) cluster.Free(a, id, false);
  cluster.Report(a);
  cluster.Advance(2 * kAfter);
  EXPECT_TRUE(a.extents.empty());
  EXPECT_EQ(Returned(cluster, ""), MiB(64));
  EXPECT_EQ(cluster.created(), Bytes());
}

TEST(IdleReleaseTest, NothingWaitsForTimeWhereAllIsInUseOrGone) {
  FakeCluster cluster(Config());
  FakeSession& a = cluster.Open("a");
  const BufferId buffer = cluster.Alloc(a, MiB(16));
  cluster.Pump();
  EXPECT_EQ(cluster.core().next_deadline(), absl::InfiniteFuture());
  cluster.Free(a, buffer, false);
  cluster.Pump();
  EXPECT_EQ(cluster.core().next_deadline(), cluster.now() + kAfter);
  cluster.Advance(2 * kAfter);
  EXPECT_EQ(cluster.core().next_deadline(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace mets::core
