#include "daemon/core/chunks/lending.h"

#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

// Two jobs that need 6 MiB within a step, and little between steps, on a device
// of 8 MiB: they take turns.
class LendingTest : public ::testing::Test {
 protected:
  LendingTest() {
    for (FakeSession* session : {&a_, &b_}) {
      cluster_.Alloc(*session, kKept);
      cluster_.Pump();
      cluster_.Report(*session);
      cluster_.Send(*session, Need(*session));
    }
    cluster_.Advance(absl::Milliseconds(100));
    if (!a_.gate.open) std::swap(first_, second_);
    Want(*second_);
  }

  static constexpr Bytes kKept = KiB(64);  // Of each job, between steps.

  static StepNeed Need(const FakeSession& session) {
    return {session.id, "host0", MiB(6), kKept, absl::Seconds(1)};
  }
  // Two buffers of 3 MiB, which the step frees.
  void Compute(FakeSession& session) {
    const BufferId x = cluster_.Alloc(session, MiB(3));
    const BufferId y = cluster_.Alloc(session, MiB(3));
    cluster_.Pump();
    ASSERT_EQ(session.buffers.count(x) + session.buffers.count(y), 2u);
    cluster_.Free(session, x, /*cache=*/true);
    cluster_.Free(session, y, /*cache=*/true);
    cluster_.Report(session);
    cluster_.Pump();
  }
  void EndTurn(FakeSession& session) {
    cluster_.Lend(session);
    cluster_.Send(session, TurnEnded{session.id, "host0", session.gate.order,
                                     absl::Milliseconds(900), true,
                                     absl::ZeroDuration()});
    Want(session);
  }
  void Want(FakeSession& session) {
    cluster_.Send(session, TurnWanted{session.id, "host0", session.gate.order});
    cluster_.Advance(absl::Milliseconds(20));
  }
  static std::set<ChunkId> Cache(const FakeSession& session) {
    std::set<ChunkId> ids;
    for (const ChunkRef& chunk : session.cache) ids.insert(chunk.id);
    return ids;
  }
  Bytes CacheBytes(const FakeSession& session) {
    Bytes sum;
    for (const ChunkRef& chunk : session.cache) sum += chunk.size;
    return sum;
  }

  FakeCluster cluster_{FakeCluster::Config(MiB(8), MiB(64))};
  FakeSession& a_ = cluster_.Open("a");
  FakeSession& b_ = cluster_.Open("b");
  FakeSession* first_ = &a_;
  FakeSession* second_ = &b_;
};

TEST_F(LendingTest, WhatAJobLendsServesTheNextAndComesBackWithItsTurn) {
  ASSERT_TRUE(first_->gate.open);
  ASSERT_FALSE(second_->gate.open);
  Compute(*first_);
  const std::set<ChunkId> lent = Cache(*first_);
  EndTurn(*first_);
  ASSERT_TRUE(second_->gate.open);
  EXPECT_TRUE(first_->cache.empty());
  EXPECT_EQ(cluster_.device().free, MiB(8) - kKept * 2);
  Compute(*second_);  // Without asking anybody for anything.
  EXPECT_EQ(first_->trims, 0);
  EndTurn(*second_);
  ASSERT_TRUE(first_->gate.open);
  EXPECT_EQ(Cache(*first_), lent);
  EXPECT_EQ(cluster_.job(first_->job).cached, MiB(6));
  EXPECT_EQ(cluster_.device().free, MiB(2) - kKept * 2);
  EXPECT_TRUE(cluster_.core().CheckInvariants().ok());
}

TEST_F(LendingTest, WhatOutlivesTheStepStaysWhereItIs) {
  Compute(*first_);
  EndTurn(*first_);
  const BufferId kept = cluster_.Alloc(*second_, MiB(3));
  cluster_.Pump();
  ASSERT_EQ(second_->buffers.count(kept), 1u);
  const Bytes used = second_->buffers[kept].size;
  EndTurn(*second_);
  ASSERT_TRUE(first_->gate.open);
  EXPECT_LT(CacheBytes(*first_), MiB(6));
  EXPECT_GE(CacheBytes(*first_) + used, MiB(6));
  // The rest comes once it is free, and the job has its next turn.
  cluster_.Free(*second_, kept, /*cache=*/false);
  EndTurn(*first_);
  EndTurn(*second_);
  ASSERT_TRUE(first_->gate.open);
  EXPECT_EQ(CacheBytes(*first_), MiB(6));
}

TEST_F(LendingTest, NothingComesBackBeyondALimit) {
  Compute(*first_);
  EndTurn(*first_);
  cluster_.Step(SetJobLimit{first_->job, MiB(3), 1});
  EndTurn(*second_);
  ASSERT_TRUE(first_->gate.open);
  EXPECT_LE(CacheBytes(*first_), MiB(3));
  EXPECT_GT(CacheBytes(*first_), MiB(1));
}

TEST_F(LendingTest, NothingComesBackWhileRequestsWait) {
  Compute(*first_);
  EndTurn(*first_);
  cluster_.Pin(*first_, BufferId(1), true);
  cluster_.Report(*first_);
  FakeSession& big = cluster_.Open("big");
  const BufferId wanted = cluster_.Alloc(big, MiB(8));
  cluster_.Pump();
  ASSERT_EQ(big.buffers.count(wanted), 0u);
  EndTurn(*second_);
  ASSERT_TRUE(first_->gate.open);
  EXPECT_TRUE(first_->cache.empty());
}

TEST_F(LendingTest, WhatIsLentCanBeDestroyedForAnotherDomain) {
  Compute(*first_);
  EndTurn(*first_);
  FakeSession& other = cluster_.Open("other", FakeCluster::Wish(2));
  const BufferId buffer = cluster_.Alloc(other, MiB(7));
  cluster_.Advance(absl::Milliseconds(50));
  EXPECT_EQ(other.buffers.count(buffer), 1u);
  EXPECT_TRUE(first_->lent.empty());
  cluster_.Kill(other);
  EndTurn(*second_);
  ASSERT_TRUE(first_->gate.open);
  EXPECT_TRUE(first_->cache.empty());
}

TEST_F(LendingTest, ABrokenStreamEndsALoan) {
  Compute(*first_);
  EndTurn(*first_);
  cluster_.Lose(*first_);
  cluster_.Resume(*first_);
  cluster_.Pump();
  EndTurn(*second_);
  cluster_.Advance(absl::Seconds(1));
  EXPECT_TRUE(first_->cache.empty());
  EXPECT_TRUE(cluster_.core().CheckInvariants().ok());
}

}  // namespace
}  // namespace mets::core
