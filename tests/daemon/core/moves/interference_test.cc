#include "daemon/core/moves/interference.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

constexpr double kBus = 50e9;
constexpr uint64_t kStep = 7;
const SessionId kSession(1);

class InterferenceTest : public ::testing::Test {
 protected:
  void Steps(int count, absl::Duration duration, double bytes_per_second) {
    for (int i = 0; i < count; ++i) {
      interference_.Add(kSession, kStep, duration, bytes_per_second);
    }
  }
  Interference interference_{kBus};
};

TEST_F(InterferenceTest, WhatAnH100LosesIsAssumedUntilItIsMeasured) {
  EXPECT_DOUBLE_EQ(interference_.PerByteRate() * 90e9, 0.06);
  Steps(3, absl::Milliseconds(100), 0);
  Steps(4, absl::Milliseconds(150), 25e9);
  EXPECT_DOUBLE_EQ(interference_.PerByteRate() * 90e9, 0.06);
}

TEST_F(InterferenceTest, StepsBesideCopiesAreComparedWithStepsWithout) {
  Steps(3, absl::Milliseconds(100), 0);
  Steps(5, absl::Milliseconds(110), 25e9);
  EXPECT_NEAR(interference_.PerByteRate() * 25e9, 0.1, 1e-9);
}

TEST_F(InterferenceTest, AFewOddStepsChangeNothing) {
  Steps(3, absl::Milliseconds(100), 0);
  Steps(6, absl::Milliseconds(110), 25e9);
  Steps(3, absl::Seconds(10), 25e9);
  EXPECT_NEAR(interference_.PerByteRate() * 25e9, 0.1, 1e-9);
}

TEST_F(InterferenceTest, StepsOfAnotherKindAreNotComparedWithThese) {
  Steps(3, absl::Milliseconds(100), 0);
  for (int i = 0; i < 9; ++i) {
    interference_.Add(kSession, kStep + 1, absl::Milliseconds(300), 25e9);
  }
  EXPECT_DOUBLE_EQ(interference_.PerByteRate(), Interference::kPrior);
}

TEST_F(InterferenceTest, ItIsNeverTakenForNothing) {
  Steps(3, absl::Milliseconds(100), 0);
  Steps(5, absl::Milliseconds(90), 25e9);
  EXPECT_DOUBLE_EQ(interference_.PerByteRate(), Interference::kPrior / 4);
}

}  // namespace
}  // namespace mets::core
