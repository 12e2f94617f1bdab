#include "common/device/host/address_region.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/contract/backends.h"

namespace mets {
namespace {

constexpr Bytes kUnit = AddressRegion::kGranularity;

TEST(AddressRegion, LargeRangesAreAlignedForFastMoves) {
  auto region = *AddressRegion::Reserve(MiB(64));
  char* small = *region->Allocate(kUnit);
  char* large = *region->Allocate(MiB(2) + kUnit);
  EXPECT_EQ(reinterpret_cast<uint64_t>(large) % MiB(2).count(), 0u);
  EXPECT_TRUE(region->Contains(small, kUnit));
  EXPECT_TRUE(region->Contains(region->begin(), MiB(64)));
  EXPECT_FALSE(region->Contains(region->begin() + 1, MiB(64)));
  EXPECT_FALSE(region->Contains(region->end(), Bytes(1)));
  EXPECT_FALSE(region->Contains(region->begin(), Bytes(-1)));
}

TEST(AddressRegion, TheWholeRegionCanBeUsedAndUsedAgain) {
  auto region = *AddressRegion::Reserve(MiB(8));
  for (int round = 0; round < 3; ++round) {
    std::vector<char*> ranges;
    for (;;) {
      absl::StatusOr<char*> range = region->Allocate(kUnit);
      if (!range.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(range.status()));
        break;
      }
      ranges.push_back(*range);
    }
    EXPECT_EQ(static_cast<int64_t>(ranges.size()), MiB(8) / kUnit);
    std::shuffle(ranges.begin(), ranges.end(), std::mt19937(round));
    for (char* range : ranges) region->Free(range, kUnit);
    absl::StatusOr<char*> whole = region->Allocate(MiB(8));
    ASSERT_TRUE(whole.ok()) << "holes were joined";
    region->Free(*whole, MiB(8));
  }
}

TEST(AddressRegion, RandomRangesNeverOverlap) {
  auto region = *AddressRegion::Reserve(MiB(256));
  std::mt19937 random(7);
  std::map<char*, Bytes> ranges;
  for (int step = 0; step < 20000; ++step) {
    if (!ranges.empty() && random() % 2 == 0) {
      auto it = ranges.begin();
      std::advance(it, random() % ranges.size());
      region->Free(it->first, it->second);
      ranges.erase(it);
      continue;
    }
    const Bytes size = kUnit * (1 + random() % (random() % 8 == 0 ? 200 : 8));
    absl::StatusOr<char*> range = region->Allocate(size);
    if (!range.ok()) continue;
    auto [it, fresh] = ranges.emplace(*range, size);
    ASSERT_TRUE(fresh);
    ASSERT_TRUE(region->Contains(*range, size));
    if (it != ranges.begin()) {
      auto before = std::prev(it);
      ASSERT_LE(before->first + before->second.count(), *range);
    }
    if (std::next(it) != ranges.end()) {
      ASSERT_LE(*range + size.count(), std::next(it)->first);
    }
  }
  for (const auto& [range, size] : ranges) region->Free(range, size);
  EXPECT_TRUE(region->Allocate(MiB(256)).ok());
}

TEST(AddressRegion, ClearTakesMemoryAway) {
  auto region = *AddressRegion::Reserve(MiB(8));
  char* range = *region->Allocate(kUnit);
  ASSERT_NE(mmap(range, kUnit.count(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_TRUE(IsWritable(range));
  ASSERT_TRUE(region->Clear(range, kUnit).ok());
  EXPECT_FALSE(IsReadable(range));
}

TEST(AddressRegionDeathTest, DoubleFreeIsABug) {
  auto region = *AddressRegion::Reserve(MiB(8));
  char* range = *region->Allocate(kUnit);
  region->Free(range, kUnit);
  EXPECT_DEATH(region->Free(range, kUnit), "freed twice");
}

TEST(AddressRegion, ImpossibleReservationIsAnError) {
  EXPECT_TRUE(absl::IsResourceExhausted(
      AddressRegion::Reserve(GiB(1) * (1 << 20)).status()));
}

}  // namespace
}  // namespace mets
