#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

// The session allocates `count` buffers, and frees `freed` of them.
void Scatter(FakeCluster& cluster, FakeSession& session, int count, Bytes size,
             int freed) {
  std::vector<BufferId> buffers;
  for (int i = 0; i < count; ++i) {
    buffers.push_back(cluster.Alloc(session, size));
  }
  cluster.Pump();
  for (int i = 0; i < freed; ++i) cluster.Free(session, buffers[i], false);
  cluster.Pump();
}

BufferId AllocOfTheFewest(FakeCluster& cluster, FakeSession& session,
                          Bytes size) {
  const BufferId buffer =
      cluster.Alloc(session, size, absl::ZeroDuration(), false, false, 0,
                    /*fewest_chunks=*/true);
  cluster.Pump();
  return buffer;
}

TEST(TurnoverTest, AChunkGoesToAnotherDomainOnlyDestroyedAndCreatedAnew) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b", {2});
  const BufferId buffer = cluster.Alloc(a, MiB(64));
  cluster.Pump();
  const std::set<ChunkId> before = a.known;
  cluster.Free(a, buffer, false);
  cluster.Pump();
  cluster.Alloc(b, MiB(64));
  cluster.Pump();
  ASSERT_EQ(b.buffers.size(), 1u);
  EXPECT_TRUE(a.known.empty());
  for (ChunkId chunk : b.known) EXPECT_EQ(before.count(chunk), 0u);
}

TEST(TurnoverTest, ChunksOfAWrongClassAreTurnedOver) {
  FakeCluster cluster(FakeCluster::Config(MiB(16), MiB(16)));
  FakeSession& a = cluster.Open("a");
  const BufferId large = cluster.Alloc(a, MiB(16));
  cluster.Pump();
  cluster.Free(a, large, false);
  cluster.Pump();
  cluster.Alloc(a, KiB(64));
  cluster.Pump();
  EXPECT_EQ(a.buffers.size(), 1u);
  EXPECT_EQ(cluster.created(), KiB(64));
  EXPECT_EQ(cluster.device().free, MiB(16) - KiB(64));
  EXPECT_EQ(a.evicted, 0);
  EXPECT_FALSE(a.tight);
}

TEST(TurnoverTest, SmallChunksServeALargeRangeWhenTheyAreFew) {
  FakeCluster cluster(FakeCluster::Config(MiB(16), MiB(16)));
  FakeSession& a = cluster.Open("a");
  Scatter(cluster, a, 16, MiB(1), 16);
  const BufferId large = cluster.Alloc(a, MiB(16));
  cluster.Pump();
  ASSERT_EQ(a.buffers.count(large), 1u);
  EXPECT_EQ(a.buffers[large].chunks.size(), 16u);
}

TEST(TurnoverTest, SmallChunksAreReplacedWhereTheFewestAreAskedFor) {
  FakeCluster cluster(FakeCluster::Config(MiB(16), MiB(16)));
  FakeSession& a = cluster.Open("a");
  Scatter(cluster, a, 16, MiB(1), 9);
  const BufferId large = AllocOfTheFewest(cluster, a, MiB(8));
  ASSERT_EQ(a.buffers.count(large), 1u);
  EXPECT_EQ(a.buffers[large].chunks.size(), 2u);
  EXPECT_EQ(a.buffers.size(), 8u);
  EXPECT_EQ(cluster.device().free, MiB(1));
}

TEST(TurnoverTest, TheFewestChunksAreMoreWhereNoneCanBeReplaced) {
  FakeCluster cluster(FakeCluster::Config(MiB(16), MiB(16)));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b");
  Scatter(cluster, a, 16, MiB(1), 16);
  cluster.Lose(a);  // It cannot say that it has forgotten them.
  const BufferId large = AllocOfTheFewest(cluster, b, MiB(16));
  ASSERT_EQ(b.buffers.count(large), 1u);
  EXPECT_EQ(b.buffers[large].chunks.size(), 16u);
}

TEST(TurnoverTest, ManyTinyChunksAreReplacedByLargeOnes) {
  FakeCluster cluster(FakeCluster::Config(MiB(16), MiB(16)));
  FakeSession& a = cluster.Open("a");
  Scatter(cluster, a, 256, KiB(64), 256);
  const BufferId large = cluster.Alloc(a, MiB(16));
  cluster.Advance(absl::Seconds(1));
  ASSERT_EQ(a.buffers.count(large), 1u);
  EXPECT_LE(a.buffers[large].chunks.size(), 80u);
  EXPECT_EQ(a.evicted, 0);
}

TEST(TurnoverTest, AChunkKnownToAStoppedSessionIsLeftAlone) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b");
  FakeSession& c = cluster.Open("c", {2});
  const BufferId first = cluster.Alloc(a, MiB(32));
  const BufferId second = cluster.Alloc(b, MiB(32));
  cluster.Pump();
  cluster.Free(a, first, false);
  cluster.Free(b, second, false);
  cluster.Pump();
  a.silent = true;
  cluster.Alloc(c, MiB(32));
  // Whatever a was asked, c gets b's chunks once a is unresponsive.
  cluster.Advance(absl::Seconds(6));
  EXPECT_EQ(c.buffers.size(), 1u);
}

TEST(TurnoverTest, AChunkThatIsKeptDrainsUntilItsKeeperEnds) {
  FakeCluster cluster(FakeCluster::Config(MiB(16), MiB(16)));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b", {2});
  const BufferId buffer = cluster.Alloc(a, MiB(16));
  cluster.Pump();
  cluster.Free(a, buffer, false);
  cluster.Pump();
  a.keeps = true;
  cluster.Alloc(b, MiB(16));
  cluster.Advance(absl::Seconds(1));
  EXPECT_TRUE(b.buffers.empty());
  EXPECT_EQ(cluster.device().draining, MiB(16));
  cluster.Kill(a);
  cluster.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
}

}  // namespace
}  // namespace mets::core
