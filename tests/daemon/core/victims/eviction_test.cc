#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

class EvictionTest : public ::testing::Test {
 protected:
  // Allocates `count` buffers of 8 MiB, each used 10 ms after the one before.
  std::vector<BufferId> Fill(FakeSession& s, int count) {
    std::vector<BufferId> ids;
    for (int i = 0; i < count; ++i) {
      ids.push_back(cluster_.Alloc(s, MiB(8)));
      cluster_.Advance(absl::Milliseconds(10));
    }
    cluster_.Report(s);
    cluster_.Pump();
    return ids;
  }
  bool Resident(FakeSession& s, BufferId id) { return s.buffers[id].resident; }

  FakeCluster cluster_{FakeCluster::Config(MiB(64), GiB(1))};
};

TEST_F(EvictionTest, TheLeastRecentlyUsedLeavesAcrossSessions) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 4);
  const auto bs = Fill(b, 4);
  cluster_.Touch(a, as[0], false);
  cluster_.Touch(a, as[1], false);
  cluster_.Report(a);
  const BufferId more = cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  EXPECT_EQ(b.buffers.count(more), 1u);
  EXPECT_FALSE(Resident(a, as[2]));
  EXPECT_TRUE(Resident(a, as[0]));
  EXPECT_TRUE(Resident(a, as[3]));
  EXPECT_EQ(a.evicted, 1);
  EXPECT_EQ(b.evicted, 0);
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").swapped, MiB(8));
  EXPECT_EQ(cluster_.device().swap_used, MiB(8));
}

TEST_F(EvictionTest, TwoJobsEvictEachOtherAndKeepTheirBytes) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b", {2});
  const auto as = Fill(a, 6);
  const auto bs = Fill(b, 6);
  // A job that passes over its buffers twice is the more recent user of all.
  for (int round = 0; round < 5; ++round) {
    for (auto& [s, ids] : {std::make_pair(&a, as), std::make_pair(&a, as),
                           std::make_pair(&b, bs), std::make_pair(&b, bs)}) {
      for (BufferId id : ids) {
        cluster_.Touch(*s, id, round % 2 == 0);  // Brings it back.
        cluster_.Advance(absl::Milliseconds(10));
        cluster_.Touch(*s, id, round % 2 == 0);
        cluster_.Report(*s);
        cluster_.Advance(absl::Milliseconds(10));
      }
    }
  }
  EXPECT_GT(a.evicted, 5);
  EXPECT_GT(b.evicted, 5);
  EXPECT_TRUE(a.denials.empty());
  EXPECT_TRUE(b.denials.empty());
}

TEST_F(EvictionTest, CachedMemoryGoesBeforeBuffers) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 8);
  cluster_.Free(a, as[7], /*cache=*/true);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_EQ(a.evicted, 0);
  EXPECT_EQ(a.trims, 1);
}

TEST_F(EvictionTest, ACleanBufferLeavesWithoutACopyAndKeepsItsSlot) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 8);
  const BufferId first = cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  ASSERT_FALSE(Resident(a, as[0]));
  cluster_.Free(b, first, false);
  cluster_.Touch(a, as[0], false);
  cluster_.Pump();
  ASSERT_TRUE(Resident(a, as[0]));
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().swap_clean, MiB(8));
  for (int i = 1; i < 8; ++i) {
    cluster_.Advance(absl::Milliseconds(10));
    cluster_.Touch(a, as[i], false);
  }
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  EXPECT_FALSE(Resident(a, as[0]));
  EXPECT_EQ(a.clean_evictions, 1);
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().swap_used, MiB(8));
}

TEST_F(EvictionTest, PinnedHeldAndFixedBuffersStay) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 8);
  cluster_.Pin(a, as[0], true);
  a.buffers[as[1]].mobility = Mobility::kHeld;
  a.buffers[as[2]].mobility = Mobility::kFixed;
  a.changed.insert({as[1], as[2]});
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").held, MiB(16));
  EXPECT_EQ(cluster_.job("a").pinned, MiB(8));
  cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_TRUE(Resident(a, as[0]));
  EXPECT_TRUE(Resident(a, as[1]));
  EXPECT_TRUE(Resident(a, as[2]));
  EXPECT_FALSE(Resident(a, as[3]));
}

TEST_F(EvictionTest, SparesServeWhenTheBestArePinnedAfterAll) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 8);
  cluster_.Pin(a, as[0], true);  // Not reported.
  cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_TRUE(Resident(a, as[0]));
  EXPECT_FALSE(Resident(a, as[1]));
  EXPECT_EQ(a.evicted, 1);
}

TEST_F(EvictionTest, AHeadThatFoundOnlyPinnedBuffersTriesAgain) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 8);
  for (BufferId id : as) cluster_.Pin(a, id, true);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Alloc(b, MiB(8));
  cluster_.Advance(absl::Seconds(1));
  EXPECT_TRUE(b.buffers.empty());
  cluster_.Pin(a, as[3], false);
  cluster_.Report(a);
  cluster_.Advance(absl::Milliseconds(20));
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_FALSE(Resident(a, as[3]));
}

TEST_F(EvictionTest, ASkippedBufferIsTriedAgainSoon) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  Fill(a, 8);
  a.skips = true;
  cluster_.Alloc(b, MiB(8));
  cluster_.Advance(absl::Milliseconds(100));
  EXPECT_TRUE(b.buffers.empty());
  a.skips = false;
  cluster_.Advance(absl::Milliseconds(3));
  EXPECT_EQ(b.buffers.size(), 1u);
}

TEST_F(EvictionTest, ABufferWhoseCopyFailedStaysAndItsSlotIsFree) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 8);
  a.fails = true;
  cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  EXPECT_TRUE(b.buffers.empty());
  a.fails = false;
  cluster_.Advance(absl::Seconds(2));
  EXPECT_EQ(b.buffers.size(), 1u);
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().swap_used, MiB(8));
}

TEST_F(EvictionTest, HigherPriorityLosesLast) {
  FakeSession& a = cluster_.Open("a", {1, {}, {}, 7});
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 4);  // Older.
  const auto bs = Fill(b, 4);
  cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  EXPECT_EQ(a.evicted, 0);
  EXPECT_FALSE(Resident(b, bs[0]));
  // The other way round, age alone decides.
  cluster_.Alloc(a, MiB(8));
  cluster_.Pump();
  EXPECT_EQ(a.evicted + b.evicted, 2);
  EXPECT_FALSE(Resident(a, as[0]));
}

TEST_F(EvictionTest, AnActiveJobKeepsItsGuarantee) {
  FakeSession& a = cluster_.Open("a", {1, {}, MiB(32)});
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 4);
  const auto bs = Fill(b, 4);
  cluster_.Alloc(b, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(a.evicted, 0);
  EXPECT_EQ(b.evicted, 2);
}

TEST_F(EvictionTest, AnIdleJobsGuaranteeRests) {
  FakeSession& a = cluster_.Open("a", {1, {}, MiB(32)});
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 4);
  const auto bs = Fill(b, 4);
  cluster_.Advance(absl::Seconds(2));
  for (BufferId id : bs) cluster_.Touch(b, id, true);
  cluster_.Report(b);
  cluster_.Alloc(b, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(a.evicted, 2);
  EXPECT_EQ(b.evicted, 0);
}

TEST_F(EvictionTest, AnIdleJobLosesItsTensorsAndGetsThemBack) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 4);
  cluster_.Advance(absl::Seconds(1));
  const auto bs = Fill(b, 8);
  EXPECT_EQ(a.evicted, 4);
  EXPECT_EQ(b.buffers.size(), 8u);
  for (BufferId id : as) cluster_.Touch(a, id, false);
  cluster_.Advance(absl::Seconds(1));
  for (BufferId id : as) EXPECT_TRUE(Resident(a, id));
}

TEST_F(EvictionTest, AStoppedSessionIsLeftAndTheOthersGoOn) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c");
  Fill(a, 4);
  Fill(b, 4);
  a.silent = true;
  cluster_.Alloc(c, MiB(8));
  cluster_.Advance(absl::Seconds(4));
  EXPECT_TRUE(c.buffers.empty());
  cluster_.Advance(absl::Seconds(2));
  EXPECT_EQ(c.buffers.size(), 1u);
  EXPECT_EQ(cluster_.job("a").unresponsive_sessions, 1);
  a.silent = false;
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").unresponsive_sessions, 0);
}

TEST_F(EvictionTest, ASessionThatStopsBeforeItsFirstReportIsNoticed) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(60));
  cluster_.Pump();
  a.silent = true;
  cluster_.Alloc(b, MiB(16), absl::Seconds(30));
  cluster_.Advance(absl::Seconds(6));
  EXPECT_EQ(cluster_.job("a").unresponsive_sessions, 1);
  EXPECT_TRUE(b.buffers.empty());
  a.silent = false;
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").unresponsive_sessions, 0);
  EXPECT_EQ(b.buffers.size(), 1u);
}

TEST_F(EvictionTest, ABufferFreedDuringAnOrderGivesItsSlotBack) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const auto as = Fill(a, 8);
  cluster_.Alloc(b, MiB(8));
  a.silent = true;
  cluster_.Pump();
  cluster_.Free(a, as[0], false);
  cluster_.Report(a);
  cluster_.Pump();
  a.silent = false;
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  cluster_.Report(a);
  cluster_.Pump();
  const DeviceStatus device = cluster_.device();
  EXPECT_EQ(device.swap_used, a.evicted * MiB(8));
}

}  // namespace
}  // namespace mets::core
