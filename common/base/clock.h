// Clock: where time comes from. Nothing else reads the system's clocks.
#ifndef METS_COMMON_BASE_CLOCK_H_
#define METS_COMMON_BASE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mets {

// Tells the time. Thread-safe. Now never goes back, also when somebody sets
// the machine's clock: durations between two readings are true.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

// The machine's monotonic clock, offset so that it was the wall-clock time
// when the object was made. Cheap to make; readings of two RealClocks compare
// as well as the wall clock was stable in between.
class RealClock : public Clock {
 public:
  RealClock();
  absl::Time Now() const override;

 private:
  const absl::Duration offset_;
};

// Of one RealClock of this process: for deadlines and durations, which must not
// end or grow because somebody sets the machine's clock.
absl::Time SteadyNow();

// A clock that stands still until it is moved (tests, simulator). Thread-safe.
class SimulatedClock : public Clock {
 public:
  explicit SimulatedClock(absl::Time start = absl::UnixEpoch() +
                                             absl::Hours(24))
      : now_(start) {}
  absl::Time Now() const override;

  // REQUIRES: `step` is not negative.
  void Advance(absl::Duration step);
  // Moves to `time`; does nothing when that has passed.
  void AdvanceTo(absl::Time time);

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_BASE_CLOCK_H_
