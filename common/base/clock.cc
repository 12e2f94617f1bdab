#include "common/base/clock.h"

#include <time.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "common/base/check.h"

namespace mets {
namespace {

absl::Duration Monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace

RealClock::RealClock()
    : offset_(absl::Now() - absl::UnixEpoch() - Monotonic()) {}

absl::Time RealClock::Now() const {
  return absl::UnixEpoch() + offset_ + Monotonic();
}

absl::Time SteadyNow() {
  static const RealClock clock;
  return clock.Now();
}

absl::Time SimulatedClock::Now() const {
  absl::MutexLock lock(&mutex_);
  return now_;
}

void SimulatedClock::Advance(absl::Duration step) {
  METS_CHECK(step >= absl::ZeroDuration()) << "step " << step;
  absl::MutexLock lock(&mutex_);
  now_ += step;
}

void SimulatedClock::AdvanceTo(absl::Time time) {
  absl::MutexLock lock(&mutex_);
  now_ = std::max(now_, time);
}

}  // namespace mets
