#include "daemon/core/chunks/chunk_ledger.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace mets::core {
namespace {

const DomainId kDomain(1);
const SessionId kA(1), kB(2);

class ChunkLedgerTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(ledger_.Check().ok()); }

  ChunkId Free(size_t size_class) {
    const ChunkId id(++last_);
    ledger_.StartCreating(id, size_class, kDomain, 0);
    ledger_.Created(id);
    return id;
  }

  uint64_t last_ = 0;
  ChunkLedger ledger_{MiB(8), {KiB(64), MiB(1)}};
};

TEST_F(ChunkLedgerTest, CreationTakesCapacityAtOnce) {
  ledger_.StartCreating(ChunkId(1), 1, kDomain, 0);
  EXPECT_EQ(ledger_.unallocated(), MiB(7));
  EXPECT_EQ(ledger_.bytes(ChunkState::kCreating), MiB(1));
  ledger_.Created(ChunkId(1));
  EXPECT_EQ(ledger_.bytes(ChunkState::kFree), MiB(1));
}

TEST_F(ChunkLedgerTest, FailedCreationGivesCapacityBack) {
  ledger_.StartCreating(ChunkId(1), 1, kDomain, 0);
  ledger_.CreateFailed(ChunkId(1));
  EXPECT_EQ(ledger_.unallocated(), MiB(8));
  EXPECT_EQ(ledger_.Find(ChunkId(1)), nullptr);
}

TEST_F(ChunkLedgerTest, ADescriptorIsSentOnceToEachSession) {
  const ChunkId id = Free(0);
  ledger_.Reserve(id, 5);
  EXPECT_TRUE(ledger_.Grant(id, kA));
  ledger_.Release(id);
  ledger_.Reserve(id, 6);
  EXPECT_FALSE(ledger_.Grant(id, kA));
  ledger_.Release(id);
  ledger_.Reserve(id, 7);
  EXPECT_TRUE(ledger_.Grant(id, kB));
  ledger_.Release(id);
}

TEST_F(ChunkLedgerTest, ChunksAreReleasedTogetherOrNotAtAll) {
  std::vector<ChunkId> own;
  for (int i = 0; i < 3; ++i) {
    own.push_back(Free(0));
    ledger_.Reserve(own.back(), 5);
    ledger_.Grant(own.back(), kA);
  }
  const ChunkId strange = Free(0);
  ledger_.Reserve(strange, 6);
  ledger_.Grant(strange, kB);
  const ChunkId unused = Free(0);
  const std::vector<std::vector<ChunkId>> bad = {
      {own[2], own[0], own[2]}, {own[0], own[0]}, {own[1], strange},
      {own[1], own[0], own[1]}, {own[0], unused}, {own[2], ChunkId(99)},
      {own[0], own[1], own[0]}};
  for (const std::vector<ChunkId>& ids : bad) {
    EXPECT_EQ(ledger_.Release(ids, kA).status().message(),
              absl::StrCat("released chunk ", ids.back().value(),
                           ", which is not its own"));
    EXPECT_EQ(ledger_.HeldBy(kA).size(), 3u);
  }
  const std::vector<ChunkId> all = {own[2], own[0], own[1]};
  EXPECT_EQ(*ledger_.Release(all, kA), KiB(64) * 3);
  EXPECT_TRUE(ledger_.HeldBy(kA).empty());
  std::vector<ChunkId> free;
  for (const Chunk* chunk : ledger_.Free(kDomain, 0)) free.push_back(chunk->id);
  EXPECT_EQ(free, std::vector<ChunkId>({unused, own[2], own[0], own[1]}));
  EXPECT_FALSE(ledger_.Release(all, kA).ok());
  ledger_.Release(strange);
}

TEST_F(ChunkLedgerTest, AFreeChunkIsRegrantedToWhoKnowsItOnly) {
  const ChunkId id = Free(0);
  const ChunkId other = Free(0);
  EXPECT_DEATH(ledger_.Regrant(id, kA), "METS_CHECK");
  ledger_.Reserve(id, 5);
  ledger_.Grant(id, kA);
  EXPECT_DEATH(ledger_.Regrant(id, kA), "METS_CHECK");
  ledger_.Release(id);
  ledger_.Regrant(id, kA);
  EXPECT_EQ(ledger_.Find(id)->state, ChunkState::kGranted);
  EXPECT_EQ(ledger_.FindHeld(id, kA), ledger_.Find(id));
  EXPECT_EQ(ledger_.FindHeld(id, kB), nullptr);
  EXPECT_EQ(ledger_.Free(kDomain, 0)[0]->id, other);
  ledger_.Release(id);
}

TEST_F(ChunkLedgerTest, AnUncertainDescriptorIsSentAgain) {
  const ChunkId id = Free(0);
  ledger_.Reserve(id, 5);
  ledger_.Grant(id, kA);
  ledger_.Release(id);
  ledger_.MarkUncertain(kA);
  EXPECT_FALSE(ledger_.Find(id)->KnownTo(kA));
  ledger_.Reserve(id, 6);
  EXPECT_TRUE(ledger_.Grant(id, kA));
  ledger_.Release(id);
}

TEST_F(ChunkLedgerTest, AChunkDrainsUntilEverySessionHasForgottenIt) {
  const ChunkId id = Free(1);
  ledger_.Reserve(id, 5);
  ledger_.Grant(id, kA);
  ledger_.Release(id);
  ledger_.Drain(id);
  EXPECT_EQ(ledger_.Draining().size(), 1u);
  ledger_.Forget(id, kA);
  ledger_.StartDestroying(id);
  EXPECT_EQ(ledger_.unallocated(), MiB(7));
  ledger_.Destroyed(id);
  EXPECT_EQ(ledger_.unallocated(), MiB(8));
}

TEST_F(ChunkLedgerTest, AnEndedSessionKnowsNothing) {
  const ChunkId id = Free(1);
  ledger_.Reserve(id, 5);
  ledger_.Grant(id, kA);
  ledger_.Release(id);
  ledger_.ForgetSession(kA);
  EXPECT_TRUE(ledger_.Find(id)->knowers.empty());
}

TEST_F(ChunkLedgerTest, OrphansTakeCapacityAndMayExceedIt) {
  ledger_.ChangeOrphan(MiB(9));
  EXPECT_EQ(ledger_.unallocated(), Bytes() - MiB(1));
  EXPECT_EQ(ledger_.creatable(), Bytes());
  ledger_.ChangeOrphan(Bytes() - MiB(4));
  EXPECT_EQ(ledger_.creatable(), MiB(3));
}

TEST_F(ChunkLedgerTest, AnUnreservedChunkInCreationBecomesFree) {
  ledger_.StartCreating(ChunkId(1), 0, kDomain, 5);
  ledger_.Unreserve(ChunkId(1));
  ledger_.Created(ChunkId(1));
  EXPECT_EQ(ledger_.Free(kDomain, 0).size(), 1u);
}

TEST_F(ChunkLedgerTest, AChunkThatCannotBeDestroyedIsLost) {
  const ChunkId id = Free(1);
  ledger_.Drain(id);
  ledger_.StartDestroying(id);
  ledger_.DestroyFailed(id);
  EXPECT_EQ(ledger_.bytes(ChunkState::kLost), MiB(1));
  EXPECT_EQ(ledger_.unallocated(), MiB(7));
}

TEST(ChunkLedgerDeathTest, BookingFromAWrongStateIsABug) {
  ChunkLedger ledger(MiB(8), {KiB(64), MiB(1)});
  ledger.StartCreating(ChunkId(1), 0, kDomain, 0);
  EXPECT_DEATH(ledger.Release(ChunkId(1)), "METS_CHECK");
  EXPECT_DEATH(ledger.Drain(ChunkId(2)), "no chunk 2");
}

}  // namespace
}  // namespace mets::core
