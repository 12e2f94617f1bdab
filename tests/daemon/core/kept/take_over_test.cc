#include <gtest/gtest.h>

#include <utility>

#include "daemon/policy/registry.h"
#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

class TakeOverTest : public ::testing::Test {
 protected:
  // Two jobs in a full pool; something of a is swapped.
  void SetUp() override {
    a_ = &cluster_.Open("a", {1, MiB(60), MiB(8), -2});
    b_ = &cluster_.Open("b");
    for (int i = 0; i < 9; ++i) {
      cluster_.Alloc(i < 6 ? *a_ : *b_, MiB(8));
      cluster_.Advance(absl::Milliseconds(10));
      cluster_.Report(*a_);
      cluster_.Report(*b_);
    }
    cluster_.Pump();
    ASSERT_GT(a_->evicted, 0);
  }

  // What comes of a new core with this configuration.
  absl::Status TakenOver(const CoreConfig& config, const KeptState& kept) {
    Core core(config, *policy::MakePolicy("lru"));
    return core.TakeOver(cluster_.now(), kept);
  }

  const CoreConfig config_ = FakeCluster::Config(MiB(64), MiB(256));
  FakeCluster cluster_{config_};
  FakeSession* a_ = nullptr;
  FakeSession* b_ = nullptr;
};

TEST_F(TakeOverTest, SessionsHaveWhatTheyHad) {
  const DeviceStatus before = cluster_.device();
  const JobStatus a = cluster_.job("a"), b = cluster_.job("b");
  EXPECT_GT(a.swapped, Bytes());
  cluster_.SucceedCore();
  EXPECT_EQ(cluster_.device().orphan, Bytes());
  EXPECT_EQ(cluster_.device().free, before.free);
  cluster_.Resume(*a_);
  cluster_.Resume(*b_);
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").resident, a.resident);
  EXPECT_EQ(cluster_.job("a").swapped, a.swapped);
  EXPECT_EQ(cluster_.job("a").limit, MiB(60));
  EXPECT_EQ(cluster_.job("a").guarantee, MiB(8));
  EXPECT_EQ(cluster_.job("a").priority, -2);
  EXPECT_EQ(cluster_.job("b").resident, b.resident);
  // Its bytes are where they were: FakeCluster checks what it reads.
  for (uint64_t i = 1; i <= 6; ++i) cluster_.Touch(*a_, BufferId(i), false);
  cluster_.Advance(absl::Seconds(1));
  EXPECT_TRUE(cluster_.core().CheckInvariants().ok());
}

TEST_F(TakeOverTest, NobodyWaitsForThoseWhoAreNotBack) {
  cluster_.Free(*b_, BufferId(1), false);
  cluster_.Pump();
  cluster_.SucceedCore();
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(c, MiB(8));
  cluster_.Pump();
  EXPECT_EQ(c.buffers.size(), 1u);
  cluster_.Pin(c, BufferId(1), true);
  cluster_.Report(c);
  // Theirs stays theirs.
  cluster_.Alloc(c, MiB(8), absl::Milliseconds(100));
  cluster_.Advance(absl::Seconds(1));
  EXPECT_EQ(c.buffers.size(), 1u);
  cluster_.Step(SessionEnded{b_->id});
}

TEST_F(TakeOverTest, WhatIsFreeStaysInItsDomainUntilAllOfItAreBack) {
  cluster_.Free(*b_, BufferId(1), false);
  cluster_.Pump();
  cluster_.SucceedCore();
  FakeSession& stranger = cluster_.Open("c", FakeCluster::Wish(2));
  cluster_.Alloc(stranger, MiB(8));
  cluster_.Resume(*a_);
  cluster_.Advance(absl::Milliseconds(100));
  EXPECT_TRUE(stranger.buffers.empty());
  cluster_.Resume(*b_);
  cluster_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(stranger.buffers.size(), 1u);
}

TEST_F(TakeOverTest, EndedSessionsLeaveTheirMemory) {
  cluster_.SucceedCore();
  cluster_.Kill(*a_);
  cluster_.Kill(*b_);
  cluster_.Advance(absl::Seconds(1));
  EXPECT_EQ(cluster_.device().free, MiB(64));
  EXPECT_EQ(cluster_.device().swap_used, Bytes());
}

TEST_F(TakeOverTest, SharesKeepTheirNames) {
  cluster_.Publish(*b_, BufferId(1), "model", "sum");
  cluster_.Pump();
  ASSERT_EQ(b_->shares.count("model"), 1u);
  cluster_.SucceedCore();
  cluster_.Resume(*b_);
  FakeSession& c = cluster_.Open("c");
  cluster_.AttachShare(c, "model", "sum");
  cluster_.Pump();
  EXPECT_EQ(c.shares.count("model"), 1u);
  EXPECT_EQ(cluster_.device().orphan, Bytes());
}

TEST_F(TakeOverTest, WhatOperatorsHaveSaidHolds) {
  cluster_.Step(DrainDevice{"host0", true, 1});
  cluster_.Step(PauseJob{"a", true, 2});
  cluster_.Step(SetJobLimit{"a", MiB(40), 3});
  cluster_.Pump();
  cluster_.SucceedCore();
  cluster_.Resume(*a_);
  cluster_.Resume(*b_);
  cluster_.Pump();
  EXPECT_TRUE(cluster_.device().drained);
  EXPECT_EQ(a_->ready.back().error, "");
  EXPECT_EQ(b_->ready.back().error, "");
  EXPECT_NE(cluster_.Open("c").ready.back().error, "");
  EXPECT_FALSE(a_->gate.open);
  EXPECT_TRUE(b_->gate.open);
  EXPECT_EQ(cluster_.job("a").limit, MiB(40));
  cluster_.Step(PauseJob{"a", false, 4});
  cluster_.Step(DrainDevice{"host0", false, 5});
  cluster_.Pump();
  EXPECT_FALSE(cluster_.job("a").paused);
  cluster_.SucceedCore();
  cluster_.Resume(*a_);
  cluster_.Pump();
  EXPECT_TRUE(a_->gate.open);
  EXPECT_FALSE(cluster_.device().drained);
}

TEST_F(TakeOverTest, OrdersAreNumberedBehindThoseOfThePredecessor) {
  const OrderId before = b_->gate_sent;
  const auto last = [&] {
    cluster_.Step(PauseJob{"b", true, 1});
    cluster_.Step(PauseJob{"b", false, 1});
    cluster_.Pump();
    return b_->gate_sent;
  };
  const OrderId first = last();
  EXPECT_LT(before, first);
  for (OrderId highest = first; highest.value() < uint64_t{4} << 40;) {
    cluster_.SucceedCore();
    cluster_.Resume(*b_);
    cluster_.Pump();
    const OrderId now = last();
    ASSERT_LT(highest, now);
    highest = now;
  }
}

TEST_F(TakeOverTest, WhatDoesNotFitIsRefused) {
  const KeptState kept = cluster_.core().GetKept();
  EXPECT_TRUE(TakenOver(config_, kept).ok());
  const auto refused = [&](const CoreConfig& config, const KeptState& state) {
    return absl::IsFailedPrecondition(TakenOver(config, state));
  };
  EXPECT_TRUE(refused(FakeCluster::Config(MiB(32), MiB(256)), kept));
  EXPECT_TRUE(refused(FakeCluster::Config(MiB(64), MiB(1)), kept));
  CoreConfig classes = config_;
  classes.devices[0].chunk_classes.resize(1);
  EXPECT_TRUE(refused(classes, kept));

  KeptState strange = kept;
  strange.sessions.erase(a_->id);
  EXPECT_TRUE(refused(config_, strange));
  strange = kept;
  strange.sessions[a_->id].orphan.clear();
  EXPECT_TRUE(refused(config_, strange));
  strange = kept;
  strange.chunks.begin()->second.device = 1;
  EXPECT_TRUE(refused(config_, strange));
  strange = kept;
  for (auto& [id, chunk] : strange.chunks) chunk.domain = DomainId(9);
  EXPECT_TRUE(refused(config_, strange));
  strange = kept;
  strange.extents.clear();
  EXPECT_TRUE(refused(config_, strange));
  strange = kept;
  KeptSlot twice = strange.slots.begin()->second;
  twice.slot.id = SlotId(1000);
  strange.slots[twice.slot.id] = twice;
  EXPECT_TRUE(refused(config_, strange));
}

TEST(KeptStateTest, NothingIsNotedUnlessAskedFor) {
  CoreConfig config = FakeCluster::Config(MiB(64), MiB(256));
  config.changes = false;
  Core core(config, *policy::MakePolicy("lru"));
  SessionOpened opened;
  opened.session = SessionId(1);
  opened.domain = DomainId(1);
  opened.job = "a";
  core.Step(absl::UnixEpoch(), opened);
  EXPECT_TRUE(core.TakeChanges().empty());
}

}  // namespace
}  // namespace mets::core
