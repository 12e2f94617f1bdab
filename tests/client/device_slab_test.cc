// Small allocations whose slabs leave and come back.
#include <gtest/gtest.h>

#include "client/src/slab_set.h"
#include "tests/client/device_fixture.h"

namespace mets::client {
namespace {

class DeviceSlabTest : public DeviceFixture {
 protected:
  static constexpr Bytes kSmall = KiB(100);

  DeviceSlabTest() : DeviceFixture(/*gated=*/false) {}

  v1::BufferOutcome EvictSlabOf(char* address) {
    const uint64_t id = Info(address).buffer_id;
    const v1::Slot slot = uplink_.NewSlot(*device_, kSmallestSlab);
    return Answer(id, slot, device_->Evict(id, slot, 1).outcome);
  }
  Op* Begin(char* address) {
    const mets_access access = {address, 0, METS_READ};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, METS_UNKNOWN, &op));
    return op;
  }
};

TEST_F(DeviceSlabTest, AllocationsWhileASlabIsAwayShareAnother) {
  char* away = Alloc(kSmall, 'a');
  device_->Free(Alloc(kSmall, 'b'));  // A block that fits best.
  char* other = Alloc(MiB(2), 'c');
  ASSERT_EQ(EvictSlabOf(away), v1::BUFFER_OUTCOME_DONE);
  Op* op = Begin(other);
  char* first = Alloc(kSmall, 'd');
  char* second = Alloc(kSmall, 'e');
  char* third = Alloc(KiB(10), 'f');
  device_->EndOp(op);
  EXPECT_NE(Info(first).buffer_id, Info(away).buffer_id);
  EXPECT_EQ(Info(second).buffer_id, Info(first).buffer_id);
  EXPECT_EQ(Info(third).buffer_id, Info(first).buffer_id);
}

TEST_F(DeviceSlabTest, ASlabThatIsBackServesAgain) {
  char* small = Alloc(kSmall, 'a');
  char* freed = Alloc(kSmall, 'b');
  device_->Free(freed);
  ASSERT_EQ(EvictSlabOf(small), v1::BUFFER_OUTCOME_DONE);
  device_->EndOp(Begin(small));
  EXPECT_TRUE(Holds(small, kSmall, 'a'));
  EXPECT_EQ(Alloc(kSmall, 'c'), freed);
}

TEST_F(DeviceSlabTest, ASlabThatIsAwayEndsWithItsLastAllocation) {
  char* small = Alloc(kSmall, 'a');
  const uint64_t id = Info(small).buffer_id;
  ASSERT_EQ(EvictSlabOf(small), v1::BUFFER_OUTCOME_DONE);
  EXPECT_GT(Stats().swapped_bytes, 0u);
  device_->Free(small);
  EXPECT_EQ(Stats().swapped_bytes, 0u);
  EXPECT_NE(Info(Alloc(kSmall, 'b')).buffer_id, id);
}

TEST_F(DeviceSlabTest, AnEmptySlabIsFreedInsteadOfMoved) {
  char* small = Alloc(kSmall, 'a');
  const uint64_t id = Info(small).buffer_id;
  device_->Free(small);
  const v1::Slot slot = uplink_.NewSlot(*device_, kSmallestSlab);
  EXPECT_EQ(device_->Evict(id, slot, 1).outcome, v1::BUFFER_OUTCOME_FREED);
  EXPECT_EQ(Stats().resident_bytes, 0u);
  EXPECT_EQ(Stats().swapped_bytes, 0u);
}

TEST_F(DeviceSlabTest, EmptySlabsGiveWayWhereMemoryIsShort) {
  Alloc(MiB(60), 'a');
  device_->Free(Alloc(kSmall, 'b'));
  EXPECT_EQ(Stats().resident_bytes, MiB(64).count());
  char* last = Alloc(kSmallestSlab, 'c');
  EXPECT_TRUE(Holds(last, kSmallestSlab, 'c'));
}

TEST_F(DeviceSlabTest, ASmallAllocationNeedsNoMoreThanItself) {
  Alloc(MiB(63), 'a');
  char* small = Alloc(kSmall, 'b');
  EXPECT_TRUE(Holds(small, kSmall, 'b'));
  EXPECT_LT(Stats().resident_bytes, MiB(64).count());
}

}  // namespace
}  // namespace mets::client
