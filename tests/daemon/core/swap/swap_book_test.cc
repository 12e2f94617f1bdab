#include "daemon/core/swap/swap_book.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

const DomainId kFirst(1), kSecond(2);

class SwapBookTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(book_.Check().ok()); }

  ExtentId Extent(DomainId domain, Bytes size) {
    const ExtentId id = book_.StartCreating(domain, size);
    book_.Created(id, absl::UnixEpoch());
    return id;
  }
  std::optional<SlotId> Allocate(Bytes size) {
    return book_.Allocate(kFirst, size, {SessionId(1), 0, BufferId(1)});
  }

  SwapBook book_{MiB(16)};
};

TEST_F(SwapBookTest, ASlotLiesInItsDomainsExtents) {
  Extent(kSecond, MiB(4));
  EXPECT_FALSE(Allocate(MiB(1)).has_value());
  const ExtentId extent = Extent(kFirst, MiB(4));
  const auto slot = Allocate(MiB(1));
  ASSERT_TRUE(slot.has_value());
  EXPECT_EQ(book_.Find(*slot)->slot.pieces[0].extent, extent);
  EXPECT_EQ(book_.bytes(0, SlotState::kOrdered), MiB(1));
}

TEST_F(SwapBookTest, AnExtentInCreationHoldsNoSlots) {
  const ExtentId id = book_.StartCreating(kFirst, MiB(4));
  EXPECT_EQ(book_.Growth(kFirst).extents, 1u);
  EXPECT_FALSE(Allocate(MiB(1)).has_value());
  book_.CreateFailed(id);
  EXPECT_EQ(book_.growable(), MiB(16));
}

TEST_F(SwapBookTest, ASlotMayHavePiecesInSeveralExtents) {
  Extent(kFirst, MiB(4));
  Extent(kFirst, MiB(4));
  Allocate(MiB(3));
  const auto slot = Allocate(MiB(5));
  ASSERT_TRUE(slot.has_value());
  EXPECT_EQ(book_.Find(*slot)->slot.pieces.size(), 2u);
  EXPECT_FALSE(Allocate(KiB(64)).has_value());
  book_.Free(*slot);
  EXPECT_EQ(book_.DomainFree(kFirst), MiB(5));
}

TEST_F(SwapBookTest, ASlotThatWouldNeedTooManyPiecesIsNotMade) {
  Extent(kFirst, MiB(16));
  std::vector<SlotId> slots;
  for (int i = 0; i < 256; ++i) slots.push_back(*Allocate(KiB(64)));
  for (int i = 0; i < 256; i += 2) book_.Free(slots[i]);
  EXPECT_FALSE(Allocate(MiB(5)).has_value());
  EXPECT_TRUE(Allocate(MiB(4)).has_value());
}

TEST_F(SwapBookTest, StatesAreCountedByDevice) {
  Extent(kFirst, MiB(8));
  const SlotId a = *Allocate(MiB(1));
  const SlotId b =
      *book_.Allocate(kFirst, MiB(2), {SessionId(1), 1, BufferId(2)});
  book_.SetState(a, SlotState::kFull);
  book_.SetClean(b, absl::UnixEpoch());
  EXPECT_EQ(book_.bytes(0, SlotState::kFull), MiB(1));
  EXPECT_EQ(book_.bytes(1, SlotState::kClean), MiB(2));
  EXPECT_EQ(book_.bytes(0, SlotState::kOrdered), Bytes());
}

TEST_F(SwapBookTest, ASlotIdIsNeverReused) {
  Extent(kFirst, MiB(8));
  const SlotId a = *Allocate(MiB(1));
  book_.Free(a);
  EXPECT_NE(*Allocate(MiB(1)), a);
}

TEST_F(SwapBookTest, ADestroyedExtentMakesRoomForAnother) {
  const ExtentId id = Extent(kSecond, MiB(16));
  EXPECT_EQ(book_.growable(), Bytes());
  book_.Drain(id);
  book_.StartDestroying(id);
  EXPECT_EQ(book_.growable(), Bytes());
  book_.Destroyed(id);
  EXPECT_EQ(book_.growable(), MiB(16));
}

}  // namespace
}  // namespace mets::core
