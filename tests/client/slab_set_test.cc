#include "client/src/slab_set.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace mets::client {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class SlabSetTest : public testing::Test {
 protected:
  struct Memory {
    explicit Memory(Bytes size) : bytes(size.count() + kMiB) {
      const auto base = reinterpret_cast<uintptr_t>(bytes.data());
      buffer.base = bytes.data() + (kMiB - base % kMiB);
      buffer.size = size.count();
    }
    std::vector<char> bytes;
    Buffer buffer;
  };
  SlabSet::Room Add(Mobility mobility = Mobility::kMovable, Stream stream = {},
                    Bytes size = kSmallestSlab) {
    memory_.push_back(std::make_unique<Memory>(size));
    return slabs_.Add(&memory_.back()->buffer, size, mobility, stream);
  }
  // Null when no slab has room.
  char* Allocate(uint64_t bytes, uint64_t align = 0) {
    const SlabSet::Room room =
        slabs_.FindRoom(Mobility::kMovable, bytes, align);
    if (!room.found()) return nullptr;
    return slabs_.Allocate(room, bytes, align, Mobility::kMovable);
  }
  void Free(Slab* slab, char* address) { slabs_.Free(slab, address); }

  std::vector<std::unique_ptr<Memory>> memory_;
  SlabSet slabs_{KiB(64)};
};

TEST_F(SlabSetTest, SizesOfAllKindsFillOneSlab) {
  Slab* slab = Add().slab;
  char* a = Allocate(kMiB);
  char* b = Allocate(3 * kMiB - 1000);
  char* c = Allocate(900);
  ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
  EXPECT_EQ(Allocate(100), nullptr);
  EXPECT_EQ(slab->BytesOf(slab->SlotOf(b + 5)), 3 * kMiB - 1000);
  EXPECT_EQ(slab->AddressOf(slab->SlotOf(b + 5)), b);
  EXPECT_EQ(slab->SlotOf(a - 1), -1);
  EXPECT_EQ(slab->SlotOf(a + kSmallestSlab.count()), -1);
}

TEST_F(SlabSetTest, FreeNeighboursBecomeOneBlock) {
  Slab* slab = Add().slab;
  std::vector<char*> all;
  for (int i = 0; i < 4; ++i) all.push_back(Allocate(kMiB));
  for (int i : {0, 2, 1, 3}) {
    Free(slab, all[i]);
    EXPECT_EQ(slab->SlotOf(all[i]), -1);
    if (i == 1) {
      EXPECT_EQ(Allocate(kMiB), all[1]) << "the last one, as it is";
      Free(slab, all[1]);
      char* three = Allocate(3 * kMiB);
      EXPECT_EQ(three, all[0]);
      Free(slab, three);
    }
  }
  EXPECT_TRUE(slab->empty());
  EXPECT_EQ(Allocate(4 * kMiB), all[0]);
}

TEST_F(SlabSetTest, SmallBlocksStayAsTheyAreUntilTheyAreNeeded) {
  Slab* slab = Add().slab;
  std::vector<char*> all;
  while (char* address = Allocate(1024)) all.push_back(address);
  EXPECT_EQ(all.size(), 4096u);
  Free(slab, all[10]);
  Free(slab, all[11]);
  EXPECT_EQ(slab->SlotOf(all[10]), -1);
  EXPECT_EQ(Allocate(1000), all[11]) << "the last one, of the same size";
  Free(slab, all[11]);
  EXPECT_EQ(Allocate(2048), all[10]) << "both";
  EXPECT_EQ(Allocate(64), nullptr);
}

TEST_F(SlabSetTest, SizesShareThePlacesOfWhatIsReady) {
  Slab* const slab = Add(Mobility::kMovable, {}, kLargestSlab).slab;
  std::vector<char*> all;
  for (int i = 1; i <= 600; ++i) all.push_back(Allocate(64 * i));
  for (char* address : all) Free(slab, address);
  EXPECT_TRUE(slab->empty());
  EXPECT_EQ(Allocate(64 * 600), all.back()) << "as it is";
  Free(slab, all.back());
  EXPECT_EQ(Allocate(kLargestSlab.count()), all[0]) << "all of them";
}

TEST_F(SlabSetTest, TheSmallestBlockThatFitsIsTaken) {
  Slab* slab = Add().slab;
  char* small = Allocate(kMiB / 2);
  Allocate(64);  // Keeps the blocks apart.
  char* large = Allocate(kMiB);
  Allocate(64);
  Free(slab, large);
  Free(slab, small);
  EXPECT_EQ(Allocate(3 * kMiB), nullptr);
  EXPECT_EQ(Allocate(kMiB / 2 - 100), small);
  EXPECT_EQ(Allocate(kMiB / 2), large);
}

TEST_F(SlabSetTest, AlignmentIsKept) {
  Add();
  Allocate(64);
  for (uint64_t align : {0, 64, 512, 4096, 65536}) {
    char* address = Allocate(100, align);
    ASSERT_NE(address, nullptr);
    const uint64_t unit = std::max<uint64_t>(align, 64);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % unit, 0u);
  }
}

TEST_F(SlabSetTest, SlabsGrowWithWhatIsAllocated) {
  EXPECT_EQ(slabs_.SlabBytes(64), kSmallestSlab);
  EXPECT_EQ(slabs_.SlabBytes(5 * kMiB + 1), MiB(5) + KiB(64));
  Add(Mobility::kMovable, {}, MiB(160));
  ASSERT_NE(Allocate(160 * kMiB), nullptr);
  EXPECT_EQ(slabs_.SlabBytes(64), MiB(10));
}

TEST_F(SlabSetTest, EmptySlabsStayUntilThereAreTwoLargeOnesOfThem) {
  std::vector<Slab*> small;
  for (int i = 0; i < 15; ++i) small.push_back(Add().slab);
  Slab* const large = Add(Mobility::kMovable, {}, kLargestSlab).slab;
  Slab* const held = Add(Mobility::kHeld).slab;
  for (Slab* slab : small) EXPECT_TRUE(slabs_.KeepAsSpare(slab));
  EXPECT_TRUE(slabs_.KeepAsSpare(large));
  EXPECT_TRUE(slabs_.KeepAsSpare(held)) << "of another kind";
  Slab* const more = Add().slab;
  EXPECT_FALSE(slabs_.KeepAsSpare(more));
  slabs_.SetAside(large);
  EXPECT_TRUE(slabs_.KeepAsSpare(more)) << "one is not there any more";
  char* const used = Allocate(4 * kMiB);
  EXPECT_EQ(slabs_.Spares().size(), 16u);
  slabs_.Remove(small[6]);
  EXPECT_EQ(slabs_.Spares().size(), 15u);
  Free(small[0], used);
  EXPECT_TRUE(slabs_.KeepAsSpare(small[0]));
  slabs_.PutBack(large);
  slabs_.SetAside(held);
  EXPECT_FALSE(slabs_.KeepAsSpare(held)) << "what is aside serves nobody";
}

TEST_F(SlabSetTest, WhatIsSmallDoesNotScatterOverFreeMemory) {
  Slab* const slab = Add().slab;
  std::vector<char*> all;
  for (int i = 0; i < 4; ++i) all.push_back(Allocate(kMiB));
  for (int i : {0, 1, 2, 3}) Free(slab, all[i]);
  EXPECT_EQ(Allocate(kMiB), all[3]) << "the last one";
  EXPECT_EQ(Allocate(kMiB), all[0]);
  EXPECT_EQ(Allocate(2 * kMiB), all[1]) << "what was freed before is one block";
}

TEST_F(SlabSetTest, WhatWasReadyInASlabGoesWithIt) {
  std::vector<char*> all;
  Slab* const first = Add().slab;
  for (int i = 0; i < 4; ++i) all.push_back(Allocate(kMiB));
  Slab* const second = Add().slab;
  for (int i = 0; i < 4; ++i) all.push_back(Allocate(kMiB));
  for (int i : {0, 4, 1, 5, 6, 2, 7, 3}) Free(i < 4 ? first : second, all[i]);
  slabs_.Remove(second);
  std::set<char*> again;
  for (int i = 0; i < 4; ++i) again.insert(Allocate(kMiB));
  EXPECT_EQ(again, std::set<char*>(all.begin(), all.begin() + 4));
  EXPECT_EQ(Allocate(kMiB), nullptr);
}

TEST_F(SlabSetTest, WhatIsSetAsideServesNothingUntilItIsPutBack) {
  Slab* const first = Add().slab;
  char* ready = Allocate(kMiB);
  char* freed = Allocate(kMiB);
  Free(first, ready);
  slabs_.SetAside(first);
  EXPECT_EQ(Allocate(kMiB), nullptr);
  EXPECT_EQ(Allocate(64), nullptr);
  Slab* const second = Add().slab;
  EXPECT_EQ(slabs_.FindRoom(Mobility::kMovable, kMiB, 0).slab, second);
  Free(first, freed);
  EXPECT_TRUE(first->empty());
  slabs_.PutBack(first);
  EXPECT_EQ(Allocate(kMiB), freed);
  EXPECT_EQ(Allocate(kMiB), ready);
}

TEST_F(SlabSetTest, WhatIsSetAsideCanBeRemoved) {
  Slab* const first = Add().slab;
  char* freed = Allocate(kMiB);
  slabs_.SetAside(first);
  Free(first, freed);
  slabs_.Remove(first);
  EXPECT_EQ(Allocate(kMiB), nullptr);
  EXPECT_TRUE(Add().found());
  EXPECT_NE(Allocate(4 * kMiB), nullptr);
}

TEST_F(SlabSetTest, KindsDoNotShareSlabs) {
  const Stream s = {StreamHandle{1}, 1}, t = {StreamHandle{2}, 2};
  const Slab* slab = Add(Mobility::kMovable, s).slab;
  EXPECT_EQ(slabs_.FindRoom(Mobility::kMovable, 64, 0, s).slab, slab);
  EXPECT_FALSE(slabs_.FindRoom(Mobility::kMovable, 64, 0, t).found());
  EXPECT_FALSE(slabs_.FindRoom(Mobility::kMovable, 64, 0).found());
  EXPECT_FALSE(slabs_.FindRoom(Mobility::kHeld, 64, 0, s).found());
}

TEST_F(SlabSetTest, WorkOfOtherStreamsIsOwedUntilItIsSettled) {
  const Stream s = {StreamHandle{1}, 1};
  Slab* slab = Add(Mobility::kMovable, s).slab;
  const auto free = [&](StreamMask used_on) {
    const char* address =
        slabs_.Allocate(slabs_.FindRoom(Mobility::kMovable, 64, 0, s), 64, 0,
                        Mobility::kMovable);
    slabs_.Free(slab, address, used_on);
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
  Slab* slab = Add().slab;
  Allocate(64);
  const int64_t slot = slab->SlotOf(Allocate(64));
  slab->SetMobility(slot, Mobility::kHeld);
  EXPECT_EQ(slab->mobility(), Mobility::kHeld);
  slabs_.Free(slab, slab->AddressOf(slot));
  EXPECT_EQ(slab->mobility(), Mobility::kMovable);
}

// No two allocations overlap, and at the end all is one block again.
TEST_F(SlabSetTest, AnyOrderOfFreesLeavesNothingBehind) {
  Slab* slab = Add().slab;
  std::mt19937 random(7);
  std::map<char*, uint64_t> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const uint64_t bytes = 1 + random() % (kMiB / 4);
      char* address = Allocate(bytes, random() % 4 == 0 ? 4096 : 0);
      if (address == nullptr) continue;
      const auto next = live.lower_bound(address);
      ASSERT_TRUE(next == live.end() || address + bytes <= next->first);
      if (next != live.begin()) {
        const auto& [before, size] = *std::prev(next);
        ASSERT_LE(before + size, address);
      }
      live[address] = bytes;
    } else {
      const auto it = std::next(live.begin(), random() % live.size());
      Free(slab, it->first);
      live.erase(it);
    }
  }
  for (const auto& [address, bytes] : live) Free(slab, address);
  EXPECT_TRUE(slab->empty());
  EXPECT_NE(Allocate(4 * kMiB), nullptr);
}

// The same of several slabs, some of which are away for a while, or go when
// they are empty.
TEST_F(SlabSetTest, AnyOrderOfMovesLeavesNothingBehind) {
  struct Allocation {
    Slab* slab;
    uint64_t bytes;
  };
  std::mt19937 random(8);
  std::map<char*, Allocation> live;
  std::set<Slab*> slabs, away;
  for (int i = 0; i < 6000; ++i) {
    const auto any = [&](const std::set<Slab*>& from) {
      return *std::next(from.begin(), random() % from.size());
    };
    const unsigned what = random() % 100;
    if (what < 2 && !slabs.empty()) {
      Slab* const slab = any(slabs);
      slabs_.SetAside(slab);
      away.insert(slab);
    } else if (what < 6 && !away.empty()) {
      Slab* const slab = any(away);
      slabs_.PutBack(slab);
      away.erase(slab);
    } else if (what < 56) {
      const uint64_t bytes = 1 + random() % 8 * (kMiB / 5);
      SlabSet::Room room = slabs_.FindRoom(Mobility::kMovable, bytes, 0);
      if (!room.found()) slabs.insert((room = Add()).slab);
      ASSERT_EQ(away.count(room.slab), 0u);
      char* address = slabs_.Allocate(room, bytes, 0, Mobility::kMovable);
      const auto next = live.lower_bound(address);
      ASSERT_TRUE(next == live.end() || address + bytes <= next->first);
      if (next != live.begin()) {
        const auto& [before, allocation] = *std::prev(next);
        ASSERT_LE(before + allocation.bytes, address);
      }
      live[address] = {room.slab, bytes};
    } else if (!live.empty()) {
      const auto it = std::next(live.begin(), random() % live.size());
      const auto [slab, bytes] = it->second;
      ASSERT_EQ(slabs_.Free(slab, it->first), bytes);
      live.erase(it);
      if (!slab->empty() || slabs_.KeepAsSpare(slab)) continue;
      slabs_.Remove(slab);
      slabs.erase(slab);
      away.erase(slab);
    }
  }
  for (const auto& [address, allocation] : live) {
    Free(allocation.slab, address);
  }
  for (Slab* slab : away) slabs_.PutBack(slab);
  for (size_t i = 0; i < slabs.size(); ++i) {
    EXPECT_NE(Allocate(kSmallestSlab.count()), nullptr) << "all of a slab";
  }
  EXPECT_EQ(Allocate(64), nullptr);
}

}  // namespace
}  // namespace mets::client
