// Small allocations of a program whose work is on streams.
#include <gtest/gtest.h>

#include "tests/client/device_streams_fixture.h"

namespace mets::client {
namespace {

class DeviceStreamsSlabTest : public DeviceStreamsTest {
 protected:
  static constexpr Bytes kSmall = MiB(1);

  char* AllocSmall(mets_stream stream) { return Alloc(stream, kSmall); }
};

TEST_F(DeviceStreamsSlabTest, ASlotIsUsedAgainOnItsStreamWithoutWaiting) {
  AllocSmall(s_);  // Keeps the slab.
  char* a = AllocSmall(s_);
  Write(a, kSmall, 1, s_);
  device_->Free(a, s_);
  const int fences = fake_cuda::Calls("cuEventRecord");
  EXPECT_EQ(AllocSmall(s_), a);
  EXPECT_EQ(fake_cuda::Calls("cuEventRecord"), fences);
  fake_cuda::Release(s_);
}

TEST_F(DeviceStreamsSlabTest, EachStreamHasItsSlabs) {
  char* a = AllocSmall(s_);
  fake_cuda::Occupy(s_);
  device_->Free(a, s_);
  EXPECT_NE(AllocSmall(t_), a);
  EXPECT_FALSE(HeldUp(t_));
  EXPECT_NE(AllocSmall(nullptr), a);
  EXPECT_EQ(AllocSmall(s_), a);
  fake_cuda::Release(s_);
}

TEST_F(DeviceStreamsSlabTest, TheSlabsStreamWaitsForWorkOnFreedSlots) {
  char* a = AllocSmall(s_);
  AllocSmall(s_);
  fake_cuda::Occupy(t_);
  device_->Free(a, t_);
  EXPECT_FALSE(HeldUp(s_)) << "a free waits for nothing";
  EXPECT_EQ(AllocSmall(s_), a);
  EXPECT_TRUE(HeldUp(s_));
  fake_cuda::Release(t_);
  EXPECT_FALSE(HeldUp(s_));
}

TEST_F(DeviceStreamsSlabTest, TheSlabsStreamWaitsForOpsOfOtherStreams) {
  char* a = AllocSmall(s_);
  AllocSmall(s_);
  Write(a, kSmall, 1, t_);
  device_->Free(a, s_);
  EXPECT_EQ(AllocSmall(s_), a);
  EXPECT_TRUE(HeldUp(s_));
  fake_cuda::Release(t_);
}

TEST_F(DeviceStreamsSlabTest, AStreamThatHasWaitedDoesNotWaitAgain) {
  char* a = AllocSmall(s_);
  AllocSmall(s_);
  fake_cuda::Occupy(t_);
  device_->Free(a, t_);
  AllocSmall(s_);
  const int fences = fake_cuda::Calls("cuEventRecord");
  AllocSmall(s_);
  EXPECT_EQ(fake_cuda::Calls("cuEventRecord"), fences);
  fake_cuda::Release(t_);
}

TEST_F(DeviceStreamsSlabTest, ASlotInHostOrderIsUsedAgainAfterItsWork) {
  char* a = AllocSmall(nullptr);
  AllocSmall(nullptr);
  Write(a, kSmall, 1, s_);
  device_->Free(a, s_);
  EXPECT_TRUE(WaitsFor(s_, [&] { EXPECT_EQ(AllocSmall(nullptr), a); }));
}

TEST_F(DeviceStreamsSlabTest, ASlabLeavesAfterTheWorkOnItsSlots) {
  char* a = AllocSmall(s_);
  char* b = AllocSmall(s_);
  const v1::Slot slot = uplink_.NewSlot(*device_, kSmallestSlab);
  Write(a, kSmall, 1, s_);
  Write(b, kSmall, 2, t_);
  fake_cuda::Release(s_);
  EXPECT_TRUE(WaitsFor(
      t_, [&] { EXPECT_EQ(Evict(a, slot), v1::BUFFER_OUTCOME_DONE); }));
  EXPECT_TRUE(Holds(a, kSmall, 1));
  EXPECT_TRUE(Holds(b, kSmall, 2));
}

}  // namespace
}  // namespace mets::client
