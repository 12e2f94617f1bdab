// What comes back when a quantum begins.
#include "client/src/returner.h"

#include <vector>

#include "absl/time/clock.h"
#include "tests/client/device_fixture.h"

namespace mets::client {
namespace {

class ReturnerTest : public DeviceFixture {
 protected:
  ReturnerTest() : DeviceFixture(/*gated=*/false) {}

  // So many buffers of 8 MiB, all of which have left, one after the other.
  void MakeSwapped(int count) {
    for (int i = 0; i < count; ++i) {
      buffers_.push_back(Alloc(MiB(8), static_cast<char>('a' + i)));
      absl::SleepFor(absl::Milliseconds(10));
    }
    for (char* buffer : buffers_) {
      EXPECT_EQ(Evict(buffer), v1::BUFFER_OUTCOME_DONE);
    }
  }
  int CountResident() {
    int count = 0;
    for (char* buffer : buffers_) count += Resident(buffer);
    return count;
  }
  // Whether so many become resident.
  bool Await(int count) {
    for (int i = 0; i < 5000 && CountResident() != count; ++i) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return CountResident() == count;
  }

  std::vector<char*> buffers_;
};

TEST_F(ReturnerTest, WhatIsSwappedComesBackWhenAQuantumBegins) {
  MakeSwapped(5);
  CloseGate();
  EXPECT_EQ(CountResident(), 0);
  OpenGate();
  ASSERT_TRUE(Await(5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Holds(buffers_[i], MiB(8), static_cast<char>('a' + i)));
  }
}

// A step that repeats needs those next.
TEST_F(ReturnerTest, WhereNotAllHaveRoomTheOldestComeBack) {
  MakeSwapped(5);
  CloseGate();
  uplink_.set_pool(MiB(24));
  OpenGate();
  ASSERT_TRUE(Await(3));
  absl::SleepFor(absl::Milliseconds(150));
  EXPECT_EQ(CountResident(), 3);
  EXPECT_TRUE(Resident(buffers_[0]) && Resident(buffers_[1]) &&
              Resident(buffers_[2]));
}

TEST_F(ReturnerTest, MemoryThatBecomesFreeSoonIsWaitedFor) {
  MakeSwapped(2);
  CloseGate();
  uplink_.set_pool(MiB(4));
  OpenGate();
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(CountResident(), 0);
  uplink_.set_pool(MiB(64));
  EXPECT_TRUE(Await(2));
}

TEST_F(ReturnerTest, NothingComesBackForATurnThatEndsWithAStep) {
  MakeSwapped(1);
  CloseGate();
  v1::Gate turn;
  turn.set_order_id(++order_);
  turn.set_device("host0");
  turn.set_state(v1::GATE_STATE_OPEN);
  turn.set_moment(v1::GATE_MOMENT_STEP_END);
  turn.set_idle_ms(60000);
  device_->FollowGate(turn);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(CountResident(), 0);
}

}  // namespace
}  // namespace mets::client
