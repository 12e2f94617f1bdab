// Programs that announce no ops: when their buffers leave, and come back.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/client/device_fixture.h"

namespace mets::client {
namespace {

class GatedDeviceTest : public DeviceFixture {
 protected:
  GatedDeviceTest() : DeviceFixture(/*gated=*/true) {}

  // Closes the gate while a thread comes to it; Join lets it in and out again.
  void CloseWithWaiter() {
    CloseGate();
    waiter_ = std::thread([this] {
      entered_ = device_->EnterSection();
      at_entry_ = 0;
      for (char* buffer : buffers_) at_entry_ += Resident(buffer);
      if (entered_.ok()) device_->LeaveSection();
    });
    AwaitWaiter();
  }
  void Join() {
    OpenGate();
    waiter_.join();
  }
  void MakeBuffers(int count, Bytes bytes) {
    for (int i = 0; i < count; ++i) buffers_.push_back(Alloc(bytes, 'a' + i));
  }

  std::thread waiter_;
  absl::Status entered_;
  std::vector<char*> buffers_;
  int at_entry_ = 0;  // Buffers that were resident then.
};

TEST_F(GatedDeviceTest, EveryBufferIsHeld) {
  EXPECT_EQ(Info(Alloc(MiB(2), 1)).mobility, METS_HELD);
  EXPECT_EQ(Info(Alloc(KiB(2), 1)).mobility, METS_HELD);
  char* fixed = Alloc(MiB(2), 1);
  EXPECT_TRUE(device_->SetMobility(fixed, Mobility::kFixed).ok());
  EXPECT_EQ(Info(fixed).mobility, METS_FIXED);
  EXPECT_TRUE(device_->SetMobility(fixed, Mobility::kMovable).ok());
  EXPECT_EQ(Info(fixed).mobility, METS_HELD);
}

TEST_F(GatedDeviceTest, BuffersLeaveOnlyWhileAThreadWaitsAtTheClosedGate) {
  MakeBuffers(1, MiB(2));
  EXPECT_EQ(Evict(buffers_[0]), v1::BUFFER_OUTCOME_SKIPPED);
  ASSERT_TRUE(device_->EnterSection().ok());
  CloseGate();
  EXPECT_EQ(Evict(buffers_[0]), v1::BUFFER_OUTCOME_SKIPPED);
  device_->LeaveSection();
  // The program may be reading its results.
  EXPECT_EQ(Evict(buffers_[0]), v1::BUFFER_OUTCOME_SKIPPED);
  CloseWithWaiter();
  EXPECT_EQ(Evict(buffers_[0]), v1::BUFFER_OUTCOME_DONE);
  EXPECT_FALSE(Resident(buffers_[0]));
  Join();
  EXPECT_EQ(Evict(buffers_[0]), v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_TRUE(Holds(buffers_[0], MiB(2), 'a'));
}

// As the threads of PyTorch's backward pass do.
TEST_F(GatedDeviceTest, WhatAnotherThreadFreesIsUsedAgainInTheSameSection) {
  ASSERT_TRUE(device_->EnterSection().ok());
  MakeBuffers(1, MiB(2));
  std::thread([this] { device_->Free(buffers_[0]); }).join();
  EXPECT_EQ(Alloc(MiB(2), 'b'), buffers_[0]);
  device_->LeaveSection();
}

// Any thread may allocate in it at once.
TEST_F(GatedDeviceTest, AnEmptySlabIsHeldToo) {
  char* small = Alloc(KiB(3), 'a');
  const mets_buffer_info info = Info(small);
  device_->Free(small);
  const v1::Slot slot = uplink_.NewSlot(*device_, kSmallestSlab);
  EXPECT_EQ(device_->Evict(info.buffer_id, slot, 1).outcome,
            v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_EQ(Alloc(KiB(3), 'b'), small);
}

TEST_F(GatedDeviceTest, FixedBuffersStayAlsoThen) {
  MakeBuffers(1, MiB(2));
  ASSERT_TRUE(device_->SetMobility(buffers_[0], Mobility::kFixed).ok());
  CloseWithWaiter();
  EXPECT_EQ(Evict(buffers_[0]), v1::BUFFER_OUTCOME_SKIPPED);
  Join();
}

// The daemon must not give the device to others before.
TEST_F(GatedDeviceTest, ATurnLastsUntilASectionEndsThatBeganBeforeAllTurns) {
  ASSERT_TRUE(device_->EnterSection().ok());
  CloseGate();
  EXPECT_EQ(TurnsEnded(), 0);
  device_->LeaveSection();
  EXPECT_EQ(TurnsEnded(), 1);
}

// The section may be waiting for them: autograd's threads free what was used on
// several streams.
TEST_F(GatedDeviceTest, OpsOfOtherThreadsDoNotWaitForTheNextTurn) {
  MakeBuffers(1, MiB(2));
  OpenGate();
  ASSERT_TRUE(device_->EnterSection().ok());
  CloseGate();
  std::thread([this] {
    const mets_access read = {buffers_[0], 0, METS_READ};
    Op* op = nullptr;
    EXPECT_TRUE(device_->BeginOp(&read, 1, 0, &op).ok());
    device_->EndOp(op);
  }).join();
  device_->LeaveSection();
  EXPECT_EQ(TurnsEnded(), 1);
}

TEST_F(GatedDeviceTest, AllThatLeftIsBackWhenASectionBegins) {
  MakeBuffers(40, MiB(1));
  buffers_.push_back(Alloc(KiB(3), 'z'));
  CloseWithWaiter();
  for (char* buffer : buffers_) {
    slots_[buffer] = uplink_.NewSlot(
        *device_, Info(buffer).bytes < 4096 ? kSmallestSlab : MiB(1));
    EXPECT_EQ(Evict(buffer), v1::BUFFER_OUTCOME_DONE);
  }
  EXPECT_EQ(uplink_.used(), Bytes());
  Join();
  EXPECT_TRUE(entered_.ok()) << entered_;
  EXPECT_EQ(at_entry_, 41);
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(Holds(buffers_[i], MiB(1), 'a' + i)) << i;
  }
  EXPECT_TRUE(Holds(buffers_[40], KiB(3), 'z'));
}

TEST_F(GatedDeviceTest, AnEvictionUnderWayIsCalledOffWhenASectionBegins) {
  MakeBuffers(2, MiB(4));
  CloseWithWaiter();
  const uint64_t id = Info(buffers_[0]).buffer_id;
  Device::EvictResult result;
  auto leaves = device_->BeginEviction(id, SlotOf(buffers_[0]), &result);
  ASSERT_TRUE(leaves.has_value());
  Join();
  EXPECT_TRUE(entered_.ok());
  buffers_[0][0] = 'n';
  EXPECT_EQ(device_->FinishEviction(*std::move(leaves), 1).outcome,
            v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_TRUE(Resident(buffers_[0]));
  EXPECT_EQ(buffers_[0][0], 'n');
}

TEST_F(GatedDeviceTest, WithoutMemoryForAllASectionDoesNotBegin) {
  MakeBuffers(4, MiB(4));
  CloseWithWaiter();
  for (char* buffer : buffers_) Evict(buffer);
  uplink_.set_pool(MiB(10));
  Join();
  EXPECT_TRUE(absl::IsResourceExhausted(entered_)) << entered_;
  EXPECT_THAT(std::string(entered_.message()), testing::HasSubstr("full"));
  // Nothing runs, and what came back stayed.
  TurnsEnded();
  CloseGate();
  EXPECT_EQ(TurnsEnded(), 1);
  OpenGate();
  uplink_.set_pool(MiB(64));
  ASSERT_TRUE(device_->EnterSection().ok());
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(Holds(buffers_[i], MiB(4), 'a' + i));
  }
  device_->LeaveSection();
}

TEST_F(GatedDeviceTest, WhatIsFreedMeanwhileDoesNotComeBack) {
  MakeBuffers(3, MiB(4));
  CloseWithWaiter();
  for (char* buffer : buffers_) Evict(buffer);
  device_->Free(buffers_.back());
  buffers_.pop_back();
  Join();
  EXPECT_EQ(at_entry_, 2);
  EXPECT_EQ(uplink_.used(), MiB(8));
}

// Two threads of a program in and out of sections, while its turns come and go
// and whatever may leave does.
TEST_F(GatedDeviceTest, SectionsFindEveryByteWheneverTurnsEnd) {
  constexpr int kBuffers = 6;
  MakeBuffers(2 * kBuffers, MiB(1));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (char value = 0; !stop; ++value) {
        METS_CHECK_OK(device_->EnterSection());
        for (int i = 0; i < kBuffers; ++i) {
          char* buffer = buffers_[t * kBuffers + i];
          const char before = value == 0 ? buffer[0] : value - 1;
          wrong += !Holds(buffer, MiB(1), before);
          std::memset(buffer, value, MiB(1).count());
        }
        device_->LeaveSection();
      }
    });
  }
  int left = 0;
  for (int turn = 0; left < 300; ++turn) {
    CloseGate();
    if (turn % 3 == 0) AwaitWaiter();
    for (char* buffer : buffers_) {
      left += Evict(buffer) == v1::BUFFER_OUTCOME_DONE;
    }
    OpenGate();
  }
  stop = true;
  Gate(v1::GATE_STATE_OPEN);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Stats().unobserved_accesses_total, 0u);
}

}  // namespace
}  // namespace mets::client
