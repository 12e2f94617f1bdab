#include "client/src/slab_set.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace mets::client {
namespace {

class SlabSetTest : public testing::Test {
 protected:
  SlabSetTest() : memory_(kSlabSize.count()) {
    buffer_.base = memory_.data();
    buffer_.size = kSlabSize.count();
  }
  std::vector<char> memory_;
  Buffer buffer_;
  SlabSet slabs_{KiB(64)};
};

TEST_F(SlabSetTest, SizesWasteAtMostAQuarterAndKeepAlignment) {
  EXPECT_EQ(SlabSet::SlotBytes(1, 0), 64u);
  EXPECT_EQ(SlabSet::SlotBytes(1025, 0), 1280u);
  EXPECT_EQ(SlabSet::SlotBytes(1024, 0), 1024u);
  EXPECT_EQ(SlabSet::SlotBytes(5000, 4096), 8192u);
  for (uint64_t bytes = 64; bytes < 1 << 20; bytes = bytes * 9 / 8) {
    const uint32_t slot = SlabSet::SlotBytes(bytes, 0);
    EXPECT_GE(slot, bytes);
    EXPECT_LE(slot, bytes + bytes / 4 + 64);
  }
}

TEST_F(SlabSetTest, AlignmentDoesNotCostMoreThanItself) {
  for (uint64_t bytes : {100, 5000, 300000, 5000000}) {
    const uint32_t slot = SlabSet::SlotBytes(bytes, 256);
    EXPECT_EQ(slot % 256, 0u);
    EXPECT_LE(slot, bytes + bytes / 4 + 256);
  }
}

TEST_F(SlabSetTest, LargeSlotsGetLargerSlabs) {
  EXPECT_EQ(slabs_.SlabBytes(64), kSlabSize);
  EXPECT_EQ(slabs_.SlabBytes(1 << 20), kSlabSize);
  const SlabSet coarse(MiB(2));
  EXPECT_EQ(coarse.SlabBytes(1 << 20), kSlabSize);
  EXPECT_EQ(coarse.SlabBytes(5 << 18), MiB(6));
  EXPECT_EQ(coarse.SlabBytes(8 << 20), MiB(32));
}

TEST_F(SlabSetTest, HandsOutEverySlotOnce) {
  Slab* slab = slabs_.Add(&buffer_, Mobility::kMovable, 1 << 20);
  std::set<char*> seen;
  while (slabs_.FindRoom(Mobility::kMovable, 1 << 20) == slab) {
    seen.insert(slab->Allocate(1000000, Mobility::kMovable));
  }
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(slabs_.FindRoom(Mobility::kHeld, 1 << 20), nullptr);
  slab->Free(slab->SlotOf(*seen.begin() + 5));
  slabs_.NoteFreed(slab);
  EXPECT_EQ(slab->SlotOf(*seen.begin()), -1);
  EXPECT_EQ(slabs_.FindRoom(Mobility::kMovable, 1 << 20), slab);
}

TEST_F(SlabSetTest, StreamsDoNotShareSlabs) {
  const Stream s = {StreamHandle{1}, 1}, t = {StreamHandle{2}, 2};
  Slab* slab = slabs_.Add(&buffer_, Mobility::kMovable, 64, s);
  EXPECT_EQ(slabs_.FindRoom(Mobility::kMovable, 64, s), slab);
  EXPECT_EQ(slabs_.FindRoom(Mobility::kMovable, 64, t), nullptr);
  EXPECT_EQ(slabs_.FindRoom(Mobility::kMovable, 64), nullptr);
}

TEST_F(SlabSetTest, WorkOfOtherStreamsIsOwedUntilItIsSettled) {
  const Stream s = {StreamHandle{1}, 1};
  Slab* slab = slabs_.Add(&buffer_, Mobility::kMovable, 64, s);
  const auto free = [&](StreamMask used_on) {
    slab->Free(slab->SlotOf(slab->Allocate(64, Mobility::kMovable)), used_on);
  };
  free(1);
  EXPECT_EQ(slab->debt().others, 0u) << "its own";
  free(1 | 2);
  const Slab::Debt first = slab->debt();
  EXPECT_EQ(first.others, 2u);
  free(2);  // After who settles has looked.
  slab->Settle(first);
  EXPECT_EQ(slab->debt().others, 2u);
  slab->Settle(slab->debt());
  EXPECT_EQ(slab->debt().others, 0u);
}

TEST_F(SlabSetTest, TheLeastMobileAllocationHoldsTheSlab) {
  Slab* slab = slabs_.Add(&buffer_, Mobility::kMovable, 64);
  slab->Allocate(64, Mobility::kMovable);
  const int slot = slab->SlotOf(slab->Allocate(64, Mobility::kMovable));
  slab->SetMobility(slot, Mobility::kHeld);
  EXPECT_EQ(slab->mobility(), Mobility::kHeld);
  slab->Free(slot);
  EXPECT_EQ(slab->mobility(), Mobility::kMovable);
}

}  // namespace
}  // namespace mets::client
