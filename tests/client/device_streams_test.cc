// When memory that a program's streams still use may be used again or leave.
#include <gtest/gtest.h>

#include "common/device/host/host_map_driver.h"
#include "tests/client/device_streams_fixture.h"

namespace mets::client {
namespace {

TEST_F(DeviceStreamsTest, ARangeIsUsedAgainOnItsStreamWithoutWaiting) {
  char* a = Alloc(s_);
  Write(a, kSize, 1, s_);
  device_->Free(a, s_);
  const int fences = fake_cuda::Calls("cuEventRecord");
  EXPECT_EQ(Alloc(s_), a);
  EXPECT_EQ(fake_cuda::Calls("cuEventRecord"), fences);
  fake_cuda::Release(s_);
}

TEST_F(DeviceStreamsTest, AnotherStreamWaitsForTheWorkOnARange) {
  char* a = Alloc(s_);
  Write(a, kSize, 1, s_);
  device_->Free(a, s_);
  EXPECT_FALSE(HeldUp(t_));
  EXPECT_EQ(Alloc(t_), a);
  EXPECT_TRUE(HeldUp(t_));
  fake_cuda::Release(s_);
  EXPECT_FALSE(HeldUp(t_));
}

TEST_F(DeviceStreamsTest, AFreeOnAStreamCoversItsUnannouncedWork) {
  char* a = Alloc(nullptr);
  fake_cuda::Occupy(s_);
  device_->Free(a, s_);
  EXPECT_EQ(Alloc(t_), a);
  EXPECT_TRUE(HeldUp(t_));
  fake_cuda::Release(s_);
}

TEST_F(DeviceStreamsTest, ThePassedOnRangeStaysInOrderWithItsFirstStream) {
  char* a = Alloc(s_);
  fake_cuda::Occupy(s_);
  device_->Free(a, s_);
  ASSERT_EQ(Alloc(t_), a);  // t waits for s.
  device_->Free(a, t_);
  const int waits = fake_cuda::Calls("cuStreamWaitEvent");
  ASSERT_EQ(Alloc(t_), a);
  EXPECT_EQ(fake_cuda::Calls("cuStreamWaitEvent"), waits) << "s is covered";
  device_->Free(a, t_);
  EXPECT_TRUE(WaitsFor(s_, [&] { EXPECT_EQ(Alloc(nullptr), a); }));
}

TEST_F(DeviceStreamsTest, HostOrderWaitsForTheWorkOnARange) {
  char* a = Alloc(s_);
  Write(a, kSize, 1, s_);
  device_->Free(a, s_);
  EXPECT_TRUE(WaitsFor(s_, [&] { EXPECT_EQ(Alloc(nullptr), a); }));
  device_->Free(a);
  const int fences = fake_cuda::Calls("cuEventRecord");
  EXPECT_EQ(Alloc(nullptr), a);
  EXPECT_EQ(fake_cuda::Calls("cuEventRecord"), fences) << "it had waited";
}

TEST_F(DeviceStreamsTest, OfEqualRangesOneThatNeedsNoWaitIsTaken) {
  char* of_s = Alloc(s_);
  char* of_t = Alloc(t_);
  device_->Free(of_s, s_);
  device_->Free(of_t, t_);
  EXPECT_EQ(Alloc(s_), of_s);
  EXPECT_EQ(Alloc(t_), of_t);
}

TEST_F(DeviceStreamsTest, ARangeThatAnOpReservedIsPassedOnInOrder) {
  device_->SetLimits(Bytes(), true);
  char* a = Alloc(s_);
  fake_cuda::Occupy(s_);
  device_->Free(a, s_);
  const mets_access access = {nullptr, static_cast<uint64_t>(kSize.count()),
                              METS_NEW};
  Op* op = nullptr;
  ASSERT_TRUE(device_->BeginOp(&access, 1, 0, &op, t_).ok());
  ASSERT_EQ(op->ranges.size(), 1u);
  EXPECT_FALSE(HeldUp(t_));
  EXPECT_EQ(Alloc(t_), a);
  EXPECT_TRUE(HeldUp(t_));
  fake_cuda::Release(s_);
  device_->EndOp(op, t_);
}

TEST_F(DeviceStreamsTest, AnEvictedBufferHasWhatPendingWorkWrites) {
  char* a = Alloc(s_);
  const v1::Slot slot = uplink_.NewSlot(*device_, kSize);
  Write(a, kSize, 5, s_);
  EXPECT_TRUE(WaitsFor(
      s_, [&] { EXPECT_EQ(Evict(a, slot), v1::BUFFER_OUTCOME_DONE); }));
  EXPECT_TRUE(Holds(a, kSize, 5));
}

TEST_F(DeviceStreamsTest, ACleanBufferLeavesAfterWorkThatReadsIt) {
  char* a = Alloc(s_);
  const v1::Slot slot = uplink_.NewSlot(*device_, kSize);
  Write(a, kSize, 5, s_);
  fake_cuda::Release(s_);
  ASSERT_EQ(Evict(a, slot), v1::BUFFER_OUTCOME_DONE);
  const mets_access access = {a, 0, METS_READ};
  Op* op = nullptr;
  ASSERT_TRUE(device_->BeginOp(&access, 1, 0, &op, s_).ok());
  char seen = 0;
  fake_cuda::Occupy(s_, [&] { seen = a[9]; });
  device_->EndOp(op, s_);
  EXPECT_TRUE(WaitsFor(
      s_, [&] { EXPECT_EQ(Evict(a, slot), v1::BUFFER_OUTCOME_DONE); }));
  EXPECT_EQ(seen, 5);
}

TEST_F(DeviceStreamsTest, ABufferThatLeftAndCameBackIsNobodys) {
  char* a = Alloc(s_);
  Write(a, kSize, 5, s_);
  fake_cuda::Release(s_);
  ASSERT_EQ(Evict(a, uplink_.NewSlot(*device_, kSize)),
            v1::BUFFER_OUTCOME_DONE);
  EXPECT_TRUE(Holds(a, kSize, 5));
  const int fences = fake_cuda::Calls("cuEventRecord");
  device_->Free(a);
  EXPECT_EQ(Alloc(nullptr), a);
  EXPECT_EQ(fake_cuda::Calls("cuEventRecord"), fences);
}

TEST_F(DeviceStreamsTest, ATrimWaitsForTheWorkOnCachedRanges) {
  char* a = Alloc(s_);
  Write(a, kSize, 1, s_);
  device_->Free(a, s_);
  EXPECT_TRUE(WaitsFor(s_, [&] { device_->Trim(kSize, 1); }));
  EXPECT_TRUE(uplink_.used().is_zero());
}

TEST_F(DeviceStreamsTest, ARangeIsTakenApartAfterTheWorkOnIt) {
  device_->SetLimits(Bytes(), true);
  uplink_.set_pool(2 * kSize);
  char* a = Alloc(s_);
  char* b = Alloc(nullptr);
  Write(a, kSize, 1, s_);
  device_->Free(a, s_);
  device_->Free(b);
  EXPECT_TRUE(WaitsFor(s_, [&] { Alloc(nullptr, 2 * kSize); }));
}

TEST_F(DeviceStreamsTest, HostDevicesHaveNoProgramStreams) {
  auto driver = HostMapDriver::Create(HostMapOptions{GiB(8)});
  METS_CHECK_OK(driver);
  FakeUplink uplink(MiB(64));
  auto host =
      Device::Create(uplink, *std::move(driver),
                     {"host0", "host", MiB(64), Bytes(), absl::Seconds(10)});
  METS_CHECK_OK(host);
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  options.bytes = kSize.count();
  void* address = nullptr;
  ASSERT_TRUE((*host)->Alloc(options, &address).ok());
  const mets_access access = {address, 0, METS_READ};
  Op* op = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*host)->BeginOp(&access, 1, 0, &op, /*stream=*/this)));
  options.stream = this;
  void* other = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument((*host)->Alloc(options, &other)));
  ASSERT_TRUE((*host)->BeginOp(&access, 1, 0, &op).ok());
  (*host)->EndOp(op, this);  // In host order.
  (*host)->Free(address, this);
  options.stream = nullptr;
  ASSERT_TRUE((*host)->Alloc(options, &other).ok());
  EXPECT_EQ(other, address);
}

}  // namespace
}  // namespace mets::client
