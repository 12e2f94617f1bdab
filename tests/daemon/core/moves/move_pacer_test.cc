#include "daemon/core/moves/move_pacer.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

constexpr double kBusSpeed = 50e9;
constexpr int kHigh = 5;

class MovePacerTest : public ::testing::Test {
 protected:
  double Seconds(absl::Time from) const {
    return from == absl::InfinitePast() ? 0
                                        : absl::ToDoubleSeconds(from - now_);
  }
  // One that ran `steps` since the report before.
  void Report(int steps, absl::Duration duration, bool alone = true) {
    steps_ += steps;
    pacer_.OnStep(kHigh, {SessionId(1), 7, steps_, duration, alone});
  }
  // Steps without and with copies beside them, the latter twice as long.
  void Measure(bool alone) {
    for (int i = 0; i < 4; ++i) Report(10, absl::Milliseconds(100), alone);
    for (int i = 0; i < 5; ++i) {
      pacer_.Charge(now_, kHigh, Bytes(20'000'000'000));
      Report(10, absl::Milliseconds(200), alone);
    }
  }

  absl::Time now_ = absl::UnixEpoch();
  MovePacer pacer_{0.02, kBusSpeed};
  int64_t steps_ = 0;
};

// 2 % at 6 % for 90 GB/s: 30 GB/s.
TEST_F(MovePacerTest, BytesMoveAtTheRateThatCostsTheBound) {
  EXPECT_NEAR(pacer_.Rate(kHigh), 30e9, 1);
  constexpr double kSeconds = 10;
  double moved = 0;
  for (const absl::Time end = now_ + absl::Seconds(kSeconds); now_ < end;) {
    const absl::Time from = pacer_.FreeAt(now_, kHigh);
    if (from > now_) {
      now_ = from;
      continue;
    }
    pacer_.Charge(now_, kHigh, Bytes(1'000'000'000));
    moved += 1e9;
  }
  EXPECT_NEAR(moved / kSeconds, 30e9, 0.5e9);
}

TEST_F(MovePacerTest, ADebtHoldsBackWhatIsBelowItAlone) {
  pacer_.Charge(now_, kHigh, Bytes(30'300'000'000));
  EXPECT_TRUE(pacer_.InDebt(now_, 0));
  EXPECT_FALSE(pacer_.InDebt(now_, kHigh));
  EXPECT_EQ(pacer_.FreeAt(now_, kHigh + 1), absl::InfinitePast());
  EXPECT_NEAR(Seconds(pacer_.FreeAt(now_, kHigh)), 1, 1e-3);
  now_ += absl::Seconds(1.001);
  EXPECT_FALSE(pacer_.InDebt(now_, 0));
}

TEST_F(MovePacerTest, WhatIsMeasuredChangesTheRate) {
  Measure(/*alone=*/true);
  // Twice as long at 10 GB/s: 0.2 GB/s would cost 2 %, but nobody starves.
  EXPECT_NEAR(pacer_.Rate(kHigh), kBusSpeed / 20, 1);
}

TEST_F(MovePacerTest, StepsBesideOthersOpsMeasureNothing) {
  Measure(/*alone=*/false);
  EXPECT_NEAR(pacer_.Rate(kHigh), 30e9, 1);
}

TEST_F(MovePacerTest, AClassThatIsGoneOwesNothing) {
  Report(1, absl::Milliseconds(100));
  pacer_.Charge(now_, kHigh, Bytes(60'000'000'000));
  pacer_.Forget(SessionId(1));
  EXPECT_EQ(pacer_.FreeAt(now_, kHigh), absl::InfinitePast());
}

}  // namespace
}  // namespace mets::core
