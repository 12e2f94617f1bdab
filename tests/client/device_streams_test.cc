// When memory that a program's streams still use may be used again or leave.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/time/clock.h"
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

TEST_F(DeviceStreamsTest, ARangeIsTakenApartForItsStreamWithoutWaiting) {
  device_->SetLimits(Bytes(), true);
  uplink_.set_pool(2 * kSize);
  char* a = Alloc(s_);
  char* b = Alloc(s_);
  Write(a, kSize, 1, s_);
  Write(b, kSize, 2, s_);
  device_->Free(a, s_);
  device_->Free(b, s_);
  char* both = Alloc(s_, 2 * kSize);
  Write(both, 2 * kSize, 3, s_);
  EXPECT_TRUE(HeldUp(s_));
  fake_cuda::Release(s_);
  EXPECT_TRUE(Holds(both, 2 * kSize, 3));
}

TEST_F(DeviceStreamsTest, WhatIsTakenApartKeepsItsStreamsToTheEnd) {
  device_->SetLimits(Bytes(), true);
  uplink_.set_pool(2 * kSize);
  char* a = Alloc(s_);
  char* b = Alloc(s_);
  Write(a, kSize, 1, s_);
  device_->Free(a, s_);
  device_->Free(b, s_);
  char* half = Alloc(s_, MiB(4));  // The rest of a range is idle now.
  EXPECT_TRUE(WaitsFor(s_, [&] { device_->Trim(2 * kSize, 1); }));
  device_->Free(half, s_);
}

TEST_F(DeviceStreamsTest, LaterWorkOnAStreamIsNotWaitedFor) {
  device_->SetLimits(Bytes(), true);
  char* a = Alloc(s_);
  char* b = Alloc(s_);
  Write(a, kSize, 1, s_);
  Write(b, kSize, 5, s_);
  device_->Free(a, s_);
  absl::SleepFor(absl::Milliseconds(2));  // Marks are not made at once again.
  device_->Free(Alloc(s_), s_);
  fake_cuda::Release(s_);
  fake_cuda::Occupy(s_);  // The program goes on.
  EXPECT_EQ(Evict(b, uplink_.NewSlot(*device_, kSize)),
            v1::BUFFER_OUTCOME_DONE);
  device_->Trim(kSize, 1);
  EXPECT_TRUE(HeldUp(s_));
  fake_cuda::Release(s_);
  EXPECT_TRUE(Holds(b, kSize, 5));
}

TEST_F(DeviceStreamsTest, WorkOfTheTimeWhenABufferWasHeldIsWaitedFor) {
  device_->SetLimits(Bytes(), true);
  char* a = Alloc(s_);
  Write(a, kSize, 1, s_);
  fake_cuda::Release(s_);
  ASSERT_TRUE(device_->SetMobility(a, Mobility::kHeld).ok());
  absl::SleepFor(absl::Milliseconds(2));
  device_->Free(Alloc(s_), s_);  // A mark.
  fake_cuda::Occupy(s_, [=] { std::memset(a, 7, kSize.count()); });
  ASSERT_TRUE(device_->SetMobility(a, Mobility::kMovable).ok());
  const v1::Slot slot = uplink_.NewSlot(*device_, kSize);
  EXPECT_TRUE(WaitsFor(
      s_, [&] { EXPECT_EQ(Evict(a, slot), v1::BUFFER_OUTCOME_DONE); }));
  EXPECT_TRUE(Holds(a, kSize, 7));
}

TEST_F(DeviceStreamsTest, OnlyARecordedStepsOpsAreTimedToTheEndOfTheirWork) {
  char* weights = Alloc(s_);
  const auto step = [&] {  // Waits for the work of how many ops.
    const int looks = fake_cuda::Calls("cuEventQuery");
    for (int op = 0; op < 4; ++op) {
      char* a = Alloc(s_, kSize * (1 + op));
      const mets_access accesses[] = {{weights, 0, METS_READ},
                                      {a, 0, METS_WRITE}};
      Op* begun = nullptr;
      METS_CHECK_OK(device_->BeginOp(accesses, 2, 0, &begun, s_));
      device_->EndOp(begun, s_);
      device_->Free(a, s_);
    }
    return fake_cuda::Calls("cuEventQuery") - looks;
  };
  int most = 0, last = 0;
  for (int i = 0; i < 100; ++i) most = std::max(most, last = step());
  EXPECT_GE(most, 4);
  EXPECT_EQ(last, 0);
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
