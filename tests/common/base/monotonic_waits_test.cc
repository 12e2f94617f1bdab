#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace {

// By how much the wall clock of this process is ahead of the kernel's: as if
// somebody had set it back between the call and the wait.
std::atomic<time_t> ahead{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += ahead;
  return static_cast<int>(result);
}

// By this one Abseil knows when a timeout is over.
extern "C" int gettimeofday(timeval* now, void* zone) noexcept {
  const long result = syscall(SYS_gettimeofday, now, zone);
  now->tv_sec += ahead;
  return static_cast<int>(result);
}

namespace mets {
namespace {

constexpr time_t kDay = 24 * 60 * 60;

class MonotonicWaitsTest : public ::testing::Test {
 protected:
  ~MonotonicWaitsTest() override { ahead = 0; }

  // How long a wait of 20 ms takes.
  absl::Duration Wait() {
    const absl::Time begin = SteadyNow();
    bool never = false;
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(mutex_.AwaitWithTimeout(absl::Condition(&never),
                                         absl::Milliseconds(20)));
    return SteadyNow() - begin;
  }

  absl::Mutex mutex_;
};

TEST_F(MonotonicWaitsTest, AWaitIsAsLongAsItSaysWhateverTheWallClock) {
  for (time_t seconds : {time_t{0}, kDay, -kDay}) {
    ahead = seconds;
    const absl::Duration waited = Wait();
    EXPECT_GE(waited, absl::Milliseconds(19)) << seconds;
    EXPECT_LE(waited, absl::Minutes(1)) << seconds;
  }
}

TEST_F(MonotonicWaitsTest, SteadyNowDoesNotFollowTheWallClock) {
  const absl::Time steady = SteadyNow();
  ahead = kDay;
  EXPECT_GE(SteadyNow(), steady);
  EXPECT_LE(SteadyNow(), steady + absl::Hours(1));
}

}  // namespace
}  // namespace mets
