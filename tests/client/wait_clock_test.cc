#include "client/src/wait_clock.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace mets::client {
namespace {

TEST(WaitClockTest, CountsFromEnterToLeave) {
  WaitClock clock;
  EXPECT_EQ(clock.waited(), absl::ZeroDuration());
  const absl::Time start = absl::Now();
  clock.Enter();
  while (clock.waited() == absl::ZeroDuration()) {
  }
  clock.Leave();
  const absl::Duration waited = clock.waited();
  EXPECT_GT(waited, absl::ZeroDuration());
  EXPECT_LE(waited, absl::Now() - start + absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(clock.waited(), waited);
}

TEST(WaitClockTest, OpsThatWaitAtTheSameTimeCountOnce) {
  WaitClock clock;
  const absl::Time start = absl::Now();
  clock.Enter();
  clock.Enter();
  absl::SleepFor(absl::Milliseconds(20));
  clock.Leave();
  EXPECT_GT(clock.waited(), absl::Milliseconds(15));
  clock.Leave();
  EXPECT_LE(clock.waited(), absl::Now() - start + absl::Milliseconds(1));
}

}  // namespace
}  // namespace mets::client
