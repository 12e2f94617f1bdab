#include "client/src/wait_clock.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "absl/time/clock.h"

namespace mets::client {
namespace {

TEST(WaitClockTest, CountsWhileAnOpWaits) {
  WaitClock clock;
  EXPECT_EQ(clock.waited(), absl::ZeroDuration());
  const absl::Time start = absl::Now();
  {
    const WaitClock::Wait wait(clock);
    while (clock.waited() == absl::ZeroDuration()) {
    }
  }
  const absl::Duration waited = clock.waited();
  EXPECT_GT(waited, absl::ZeroDuration());
  EXPECT_LE(waited, absl::Now() - start + absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(clock.waited(), waited);
}

TEST(WaitClockTest, OpsThatWaitAtTheSameTimeCountOnce) {
  WaitClock clock;
  const absl::Time start = absl::Now();
  std::optional<WaitClock::Wait> first(std::in_place, clock);
  std::optional<WaitClock::Wait> second(std::in_place, clock);
  absl::SleepFor(absl::Milliseconds(20));
  first.reset();
  EXPECT_GT(clock.waited(), absl::Milliseconds(15));
  second.reset();
  EXPECT_LE(clock.waited(), absl::Now() - start + absl::Milliseconds(1));
}

}  // namespace
}  // namespace mets::client
