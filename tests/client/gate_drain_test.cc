// How a turn ends when the program's streams have work left.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/src/gate.h"

namespace mets::client {
namespace {

class GateDrainTest : public testing::Test {
 protected:
  void Follow(v1::GateState state, uint32_t idle_ms) {
    v1::Gate order;
    order.set_order_id(++order_);
    order.set_device("gpu");
    order.set_state(state);
    order.set_moment(v1::GATE_MOMENT_NOW);
    order.set_idle_ms(idle_ms);
    gate_.Follow(order);
  }
  void Open() { Follow(v1::GATE_STATE_OPEN, 60000); }
  void Close() { Follow(v1::GATE_STATE_CLOSED, 0); }

  // 'D': a drain was asked for; 'B': before the end; 'E': ended.
  std::string Happened() { return std::exchange(happened_, ""); }

  bool streams_ = true;
  uint64_t order_ = 0;
  uint64_t turn_ = 0;  // Of the last drain.
  v1::TurnEnded ended_;
  std::string happened_;
  WaitClock waits_;
  Gate gate_{"gpu",
             [this](v1::ClientMessage m) {
               if (!m.has_turn_ended()) return;
               happened_ += 'E';
               ended_ = m.turn_ended();
             },
             [] { return true; },
             &waits_,
             {[this](uint64_t turn) {
                happened_ += 'D';
                turn_ = turn;
                return streams_;
              },
              [this] { happened_ += 'B'; }}};
};

TEST_F(GateDrainTest, ATurnEndsAfterItsDrain) {
  Open();
  gate_.Enter();
  Close();
  EXPECT_EQ(Happened(), "") << "an op runs";
  gate_.Leave();
  EXPECT_EQ(Happened(), "D");
  gate_.Poll();
  EXPECT_EQ(Happened(), "") << "once";
  gate_.Drained(turn_);
  EXPECT_EQ(Happened(), "BE");
  gate_.Drained(turn_);
  EXPECT_EQ(Happened(), "");
}

TEST_F(GateDrainTest, ATurnWithoutStreamsEndsAtOnce) {
  streams_ = false;
  Open();
  gate_.Enter();
  Close();
  gate_.Leave();
  EXPECT_EQ(Happened(), "DBE");
}

TEST_F(GateDrainTest, ADrainIsInVainWhenTheGateHasOpened) {
  Open();
  Close();
  const uint64_t first = turn_;
  EXPECT_EQ(Happened(), "D");
  Open();
  gate_.Drained(first);
  EXPECT_EQ(Happened(), "");
  Close();
  gate_.Drained(first);
  EXPECT_EQ(Happened(), "D");
  gate_.Drained(turn_);
  EXPECT_EQ(Happened(), "BE");
}

TEST_F(GateDrainTest, ALostConnectionDropsTheDrain) {
  Open();
  Close();
  gate_.Open();
  gate_.Drained(turn_);
  EXPECT_EQ(Happened(), "D");
}

TEST_F(GateDrainTest, TheEndAnswersTheNewestOrder) {
  Open();
  Close();
  Close();
  EXPECT_EQ(Happened(), "D");
  gate_.Drained(turn_);
  EXPECT_EQ(Happened(), "BE");
  EXPECT_EQ(ended_.order_id(), order_);
  Close();
  gate_.Drained(turn_);
  EXPECT_EQ(Happened(), "DBE") << "each order is answered";
  EXPECT_EQ(ended_.order_id(), order_);
}

TEST_F(GateDrainTest, TheDeviceComputesUntilTheDrainIsOver) {
  constexpr absl::Duration kWork = absl::Milliseconds(2);
  Open();
  gate_.Enter();
  Close();
  gate_.Leave();
  absl::SleepFor(kWork);
  gate_.Drained(turn_);
  EXPECT_GE(absl::Microseconds(ended_.computed_us()), kWork);
}

}  // namespace
}  // namespace mets::client
