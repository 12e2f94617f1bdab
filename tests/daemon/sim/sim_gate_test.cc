#include "daemon/sim/sim_gate.h"

#include <gtest/gtest.h>

namespace mets::sim {
namespace {

class SimGateTest : public ::testing::Test {
 protected:
  SimGateTest()
      : gate_(
            &world_, SessionId(1), "device0",
            [this](core::Input input) { sent_.push_back(input); },
            [this] { return stalled_; }) {}

  void Order(bool open, core::GateMoment moment,
             absl::Duration idle = absl::Milliseconds(50)) {
    core::GateOrder order;
    order.order = OrderId(++last_);
    order.open = open;
    order.moment = moment;
    order.idle = idle;
    gate_.Follow(order);
  }
  void RunAll() {
    while (world_.RunNext()) {
    }
  }
  bool Enter() {
    return gate_.Enter([this] { ++resumed_; });
  }
  template <typename Message>
  int Count() const {
    int count = 0;
    for (const core::Input& input : sent_) {
      count += std::holds_alternative<Message>(input);
    }
    return count;
  }

  World world_;
  std::vector<core::Input> sent_;
  uint64_t last_ = 0;
  int resumed_ = 0;
  double stalled_ = 0;
  SimGate gate_;
};

TEST_F(SimGateTest, OpsPassWhileThereAreNoOrders) {
  EXPECT_TRUE(Enter());
  gate_.Leave();
  gate_.StepEnds();
  RunAll();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SimGateTest, ATurnEndsWhereTheNextStepBegins) {
  gate_.StepEnds();
  Order(true, core::GateMoment::kStepEnd);
  EXPECT_TRUE(Enter());
  gate_.Leave();
  gate_.StepEnds();
  ASSERT_EQ(Count<core::TurnEnded>(), 1);
  EXPECT_TRUE(std::get<core::TurnEnded>(sent_.back()).step_end);
  EXPECT_FALSE(Enter());
  EXPECT_EQ(Count<core::TurnWanted>(), 1);
}

TEST_F(SimGateTest, OnceItsOpsHaveBeenCountedATurnEndsWithTheLastOne) {
  gate_.StepEnds();
  for (int step = 0; step < 3; ++step) {
    Order(true, core::GateMoment::kStepEnd);
    for (int op = 0; op < 3; ++op) {
      EXPECT_EQ(Count<core::TurnEnded>(), step);
      EXPECT_TRUE(Enter());
      gate_.Leave();
    }
    EXPECT_EQ(Count<core::TurnEnded>(), step == 2 ? 3 : step);
    gate_.StepEnds();
    EXPECT_EQ(Count<core::TurnEnded>(), step + 1);
  }
}

TEST_F(SimGateTest, WhoWaitsGoesOnWhenItOpens) {
  Order(false, core::GateMoment::kNow);
  EXPECT_FALSE(Enter());
  world_.At(3, [this] { Order(true, core::GateMoment::kNow, {}); });
  RunAll();
  EXPECT_EQ(resumed_, 1);
  EXPECT_DOUBLE_EQ(gate_.waited(), 3);
}

TEST_F(SimGateTest, ARunningOpFinishesFirst) {
  EXPECT_TRUE(Enter());
  Order(false, core::GateMoment::kNow);
  EXPECT_EQ(Count<core::TurnEnded>(), 0);
  gate_.Leave();
  EXPECT_EQ(Count<core::TurnEnded>(), 1);
}

TEST_F(SimGateTest, AQuantumEndsWhenItIsIdle) {
  Order(true, core::GateMoment::kNow);
  EXPECT_TRUE(Enter());
  world_.At(1, [this] { gate_.Leave(); });
  RunAll();
  ASSERT_EQ(Count<core::TurnEnded>(), 1);
  EXPECT_EQ(std::get<core::TurnEnded>(sent_[0]).computed, absl::Seconds(1));
  EXPECT_NEAR(world_.now(), 1.05, 1e-6);
}

TEST_F(SimGateTest, WhatOpsWaitInAQuantumsFirstTwoStepsIsItsStall) {
  stalled_ = 5;
  Order(true, core::GateMoment::kNow);
  for (double stall : {1, 2, 4}) {
    EXPECT_TRUE(Enter());
    stalled_ += stall;
    gate_.Leave();
    gate_.StepEnds();
  }
  Order(false, core::GateMoment::kNow);
  stalled_ += 8;
  ASSERT_EQ(Count<core::TurnEnded>(), 1);
  EXPECT_EQ(std::get<core::TurnEnded>(sent_[0]).stalled, absl::Seconds(3));
  Order(true, core::GateMoment::kNow);
  Order(false, core::GateMoment::kNow);
  EXPECT_EQ(std::get<core::TurnEnded>(sent_[1]).stalled, absl::ZeroDuration());
}

TEST_F(SimGateTest, ATurnWhoseStepIsNotKnownEndsInTime) {
  Order(true, core::GateMoment::kStepEnd);
  EXPECT_TRUE(Enter());
  RunAll();
  gate_.Leave();
  EXPECT_EQ(Count<core::TurnEnded>(), 1);
}

}  // namespace
}  // namespace mets::sim
