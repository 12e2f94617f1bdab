// Turns of a program whose work is on streams.
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/client/device_streams_fixture.h"

namespace mets::client {
namespace {

class DeviceStreamsGateTest : public DeviceStreamsTest {
 protected:
  void Follow(v1::GateState state, uint32_t idle_ms) {
    v1::Gate order;
    order.set_order_id(++order_);
    order.set_device("gpu");
    order.set_state(state);
    order.set_moment(v1::GATE_MOMENT_NOW);
    order.set_idle_ms(idle_ms);
    device_->gate().Follow(order);
  }
  void Open() { Follow(v1::GATE_STATE_OPEN, 60000); }
  void Close() { Follow(v1::GATE_STATE_CLOSED, 0); }
  bool Ended() {
    for (const v1::ClientMessage& message : uplink_.TakeSent()) {
      if (message.has_turn_ended()) return true;
    }
    return false;
  }
  bool EndsSoon() {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!Ended()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Microseconds(100));
    }
    return true;
  }
  // Whether the turn is still not over after many looks at the streams.
  bool StaysOpen() {
    const int looks = fake_cuda::Calls("cuEventQuery");
    while (fake_cuda::Calls("cuEventQuery") < looks + 150) {
      if (Ended()) return false;
      std::this_thread::yield();
    }
    return true;
  }

  uint64_t order_ = 0;
};

TEST_F(DeviceStreamsGateTest, ATurnEndsAfterTheWorkOfItsOps) {
  Open();
  char* a = Alloc(s_);
  Write(a, kSize, 1, s_);
  Close();
  EXPECT_TRUE(StaysOpen());
  fake_cuda::Release(s_);
  EXPECT_TRUE(EndsSoon());
}

TEST_F(DeviceStreamsGateTest, ATurnEndsAfterTheWorkThatASectionLeft) {
  Alloc(s_);
  Alloc(t_);
  Open();
  ASSERT_TRUE(device_->EnterSection().ok());
  fake_cuda::Occupy(t_);
  Close();
  EXPECT_FALSE(Ended());
  device_->LeaveSection();
  EXPECT_TRUE(StaysOpen());
  fake_cuda::Release(t_);
  EXPECT_TRUE(EndsSoon());
}

TEST_F(DeviceStreamsGateTest, ATurnInHostOrderEndsAtOnce) {
  Open();
  char* a = Alloc(nullptr);
  fake_cuda::Occupy(s_);  // Nobody has told us of it.
  EXPECT_TRUE(Holds(a, kSize, 0));
  Close();
  EXPECT_TRUE(Ended());
  fake_cuda::Release(s_);
}

TEST_F(DeviceStreamsGateTest, ATurnThatOpensAgainDoesNotEnd) {
  Open();
  char* a = Alloc(s_);
  Write(a, kSize, 1, s_);
  Close();
  EXPECT_TRUE(StaysOpen());
  Open();
  Write(a, kSize, 2, s_);
  Close();  // One drain at a time: the next is behind both.
  fake_cuda::Release(s_);
  EXPECT_TRUE(EndsSoon());
  EXPECT_FALSE(Ended());
}

}  // namespace
}  // namespace mets::client
