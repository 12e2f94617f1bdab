#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;

TEST(GrantingTest, AttachDescribesTheDevice) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  ASSERT_EQ(a.ready.size(), 1u);
  EXPECT_EQ(a.ready[0].error, "");
  EXPECT_EQ(a.ready[0].device, "host0");
  EXPECT_EQ(a.ready[0].kind, "host");
  EXPECT_EQ(a.ready[0].pool, MiB(64));
  EXPECT_EQ(a.ready[0].chunk_classes.size(), 5u);
}

TEST(GrantingTest, AnUnknownDeviceIsNamedAlongWithTheKnownOnes) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  cluster.Send(a, AttachDevice{a.id, "cuda7", true});
  cluster.Pump();
  ASSERT_EQ(a.ready.size(), 2u);
  EXPECT_THAT(a.ready[1].error, HasSubstr("cuda7"));
  EXPECT_THAT(a.ready[1].error, HasSubstr("host0"));
}

TEST(GrantingTest, ARequestIsFilledFromNewChunks) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  const BufferId buffer = cluster.Alloc(a, MiB(21) + KiB(100));
  cluster.Pump();
  ASSERT_EQ(a.buffers.count(buffer), 1u);
  // 16 + 4 + 1 MiB, 2 x 64 KiB: less than 64 KiB is wasted.
  EXPECT_EQ(a.buffers[buffer].chunks.size(), 5u);
  EXPECT_EQ(a.buffers[buffer].size, MiB(21) + KiB(128));
  EXPECT_EQ(cluster.device().resident, MiB(21) + KiB(128));
}

TEST(GrantingTest, ARequestThatFreeChunksFillIsGrantedInTheSameStep) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  const BufferId buffer = cluster.Alloc(a, MiB(8));
  cluster.Pump();
  cluster.Free(a, buffer, /*cache=*/false);
  cluster.Pump();
  const std::vector<Action> actions = cluster.core().Step(
      cluster.now(),
      Acquire{a.id, RequestId(77), "", {MiB(8)}, absl::Seconds(1), false});
  ASSERT_EQ(actions.size(), 1u);
  const auto& session_action = std::get<SessionAction>(actions[0]);
  const auto& grant = std::get<Grant>(session_action);
  EXPECT_EQ(grant.request, RequestId(77));
  EXPECT_EQ(grant.chunks.size(), 2u);
  EXPECT_THAT(grant.range_chunks, testing::ElementsAre(2u));
  // Known already: no descriptors to send.
  EXPECT_TRUE(grant.new_to_session.empty());
}

TEST(GrantingTest, RangesAreGrantedTogetherOrNotAtAll) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), Bytes()));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b");
  cluster.Alloc(a, MiB(48));
  cluster.Pump();
  Acquire acquire{b.id, RequestId(1), "", {MiB(8), MiB(16)}, absl::Seconds(1),
                  false};
  b.requests[RequestId(1)] = {BufferId(1), MiB(24), false};
  cluster.Send(b, acquire);
  cluster.Pump();
  EXPECT_EQ(cluster.device().free, MiB(16));
  EXPECT_EQ(cluster.job("b").waiting, 1);
  cluster.Advance(absl::Seconds(2));
  ASSERT_EQ(b.denials.size(), 1u);
  EXPECT_EQ(cluster.device().free, MiB(16));
}

TEST(GrantingTest, ChunksOfOneDomainAreReusedByItsOtherSessions) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  FakeSession& b = cluster.Open("b");
  const BufferId buffer = cluster.Alloc(a, MiB(16));
  cluster.Pump();
  const ChunkId chunk = a.buffers[buffer].chunks[0].id;
  cluster.Free(a, buffer, false);
  cluster.Pump();
  const BufferId other = cluster.Alloc(b, MiB(16));
  cluster.Pump();
  ASSERT_EQ(b.buffers.count(other), 1u);
  EXPECT_EQ(b.buffers[other].chunks[0].id, chunk);
}

TEST(GrantingTest, AFailedCreationIsRolledBackAndTriedAgain) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  cluster.failing_creations = 1;
  const BufferId buffer = cluster.Alloc(a, MiB(20));
  cluster.Pump();
  EXPECT_EQ(a.buffers.count(buffer), 0u);
  cluster.Advance(absl::Seconds(1));
  EXPECT_EQ(a.buffers.count(buffer), 1u);
  EXPECT_TRUE(a.denials.empty());
}

TEST(GrantingTest, CreationThatKeepsFailingIsTheReasonOfTheDenial) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  cluster.failing_creations = 1 << 20;
  cluster.Alloc(a, MiB(16), absl::Seconds(1));
  cluster.Advance(absl::Seconds(2));
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_THAT(a.denials[0].reason, HasSubstr("no such memory"));
  EXPECT_EQ(cluster.device().free, MiB(64));
}

TEST(GrantingTest, ACancelledRequestIsAnsweredOnceAndLeavesNothing) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  cluster.manual_memory = true;
  cluster.Alloc(a, MiB(20));
  cluster.Pump();
  cluster.Send(a, Cancel{a.id, RequestId(1)});
  cluster.Send(a, Cancel{a.id, RequestId(1)});
  cluster.manual_memory = false;
  cluster.Pump();
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_EQ(a.denials[0].reason, "cancelled");
  EXPECT_TRUE(a.buffers.empty());
  EXPECT_EQ(cluster.device().free, MiB(64));
}

TEST(GrantingTest, ARepeatedRequestIdIsAnsweredOnce) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  cluster.manual_memory = true;
  cluster.Alloc(a, MiB(4));
  cluster.Pump();
  cluster.Send(
      a, Acquire{a.id, RequestId(1), "", {MiB(4)}, absl::Seconds(1), false});
  cluster.DeliverToCore(a);
  cluster.manual_memory = false;
  cluster.Pump();
  EXPECT_EQ(a.buffers.size(), 1u);
  EXPECT_EQ(cluster.device().resident, MiB(4));
}

TEST(GrantingTest, ARequestOfASessionThatEndsLeavesFreeChunks) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a");
  cluster.manual_memory = true;
  cluster.Alloc(a, MiB(20));
  cluster.Pump();
  cluster.Kill(a);
  cluster.manual_memory = false;
  cluster.Pump();
  EXPECT_EQ(cluster.device().free, MiB(64));
}

}  // namespace
}  // namespace mets::core
