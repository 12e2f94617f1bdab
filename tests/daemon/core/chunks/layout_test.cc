#include "daemon/core/chunks/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::core {
namespace {

const DomainId kMine(1), kTheirs(2);
const SessionId kHolder(1);

class LayoutTest : public ::testing::Test {
 protected:
  ChunkId Free(size_t size_class, DomainId domain = kMine) {
    const ChunkId id(++last_);
    ledger_.StartCreating(id, size_class, domain, 0);
    ledger_.Created(id);
    return id;
  }
  Layout Plan(const std::vector<Bytes>& ranges,
              PieceBound bound = PieceBound::kBounded) {
    return PlanLayout(ledger_, kMine, kHolder, ranges, ledger_.creatable(),
                      bound);
  }

  uint64_t last_ = 0;
  ChunkLedger ledger_{MiB(16), {KiB(64), MiB(1), MiB(4)}};
};

TEST_F(LayoutTest, LargestClassesComeFirst) {
  const Layout layout = Plan({MiB(6) + KiB(128)});
  std::vector<size_t> classes;
  for (const Layout::Piece& piece : layout.pieces) {
    classes.push_back(piece.size_class);
  }
  EXPECT_THAT(classes, testing::ElementsAre(2, 1, 1, 0, 0));
  EXPECT_EQ(layout.missing, Bytes());
}

TEST_F(LayoutTest, FreeChunksAreUsedBeforeNewOnes) {
  const ChunkId free = Free(2);
  const Layout layout = Plan({MiB(8)});
  ASSERT_EQ(layout.pieces.size(), 2u);
  EXPECT_EQ(layout.pieces[0].chunk, free);
  EXPECT_FALSE(layout.pieces[1].chunk.ok());
}

TEST_F(LayoutTest, ChunksThatTheSessionKnowsArePreferred) {
  const ChunkId known = Free(2);
  ledger_.Reserve(known, 1);
  ledger_.Grant(known, kHolder);
  ledger_.Release(known);
  Free(2);
  Free(2);
  EXPECT_EQ(Plan({MiB(4)}).pieces[0].chunk, known);
}

TEST_F(LayoutTest, FreeChunksOfOtherDomainsAreNotUsed) {
  for (int i = 0; i < 4; ++i) Free(2, kTheirs);
  const Layout layout = Plan({MiB(4)});
  EXPECT_EQ(layout.missing, MiB(4));
}

TEST_F(LayoutTest, SmallerChunksServeWhenThereIsNoRoomForLargeOnes) {
  for (int i = 0; i < 16; ++i) Free(1);
  const Layout layout = Plan({MiB(8)});
  EXPECT_EQ(layout.missing, Bytes());
  EXPECT_EQ(layout.pieces.size(), 8u);
}

TEST_F(LayoutTest, ARangeHasABoundOfPiecesUnlessUnbounded) {
  for (int i = 0; i < 256; ++i) Free(0);
  EXPECT_EQ(Plan({MiB(8)}).missing, MiB(4));
  const Layout layout = Plan({MiB(8)}, PieceBound::kUnbounded);
  EXPECT_EQ(layout.missing, Bytes());
  EXPECT_EQ(layout.pieces.size(), 128u);
}

TEST_F(LayoutTest, TheFewestPiecesLeaveOutSmallerChunks) {
  for (int i = 0; i < 16; ++i) Free(1);
  EXPECT_EQ(Plan({MiB(9)}, PieceBound::kFewest).missing, MiB(8));
  const Layout layout = Plan({MiB(2)}, PieceBound::kFewest);
  EXPECT_EQ(layout.missing, Bytes());
  EXPECT_EQ(layout.pieces.size(), 2u);
}

TEST_F(LayoutTest, RangesShareNoChunk) {
  Free(2);
  const Layout layout = Plan({MiB(4), MiB(4), MiB(4)});
  EXPECT_THAT(layout.range_pieces, testing::ElementsAre(1, 1, 1));
  EXPECT_TRUE(layout.pieces[0].chunk.ok());
  EXPECT_FALSE(layout.pieces[1].chunk.ok());
  EXPECT_EQ(Plan({MiB(12), MiB(8)}).missing, MiB(4));
}

}  // namespace
}  // namespace mets::core
