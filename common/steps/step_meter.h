// StepMeter: what a step needs of the device.
#ifndef METS_COMMON_STEPS_STEP_METER_H_
#define METS_COMMON_STEPS_STEP_METER_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::steps {

// Not thread-safe.
class StepMeter {
 public:
  // `cautious`, for a program that cannot be stopped within a step: nothing is
  // told before two steps in a row have needed about the same (the first may
  // have built the model, or been an evaluation), and the peak is the highest
  // of all steps, so that nobody begins a step that does not fit.
  explicit StepMeter(bool cautious = false) : cautious_(cautious) {}

  struct Need {
    Bytes peak;        // The most that was live.
    Bytes persistent;  // Live at the step's end.
    absl::Duration step;
  };

  // The bytes that are live now, whether resident or not.
  void NoteLive(Bytes live) {
    if (live > peak_) peak_ = live;
  }
  // A step ends at `now`; `waited`: how long the process has waited so far, for
  // memory and at its gate. The need, if the daemon does not know it yet: bytes
  // have changed by more than 5 % of the peak, or time by a quarter. Told at
  // most ten times a second, unless the peak has grown: steps may be short.
  std::optional<Need> StepEnds(absl::Time now, Bytes live,
                               absl::Duration waited);
  // Steps that have ended, from one end to the next, and what they took.
  struct Totals {
    uint64_t steps = 0;
    absl::Duration time;  // Waits included.
    absl::Duration wait;  // Of that.
  };
  const Totals& totals() const { return totals_; }
  // The daemon knows nothing.
  void Forget() { told_.reset(); }

 private:
  void Count(absl::Duration time, absl::Duration wait);
  // Whether the peak is not to be trusted yet.
  bool Unsettled(Bytes peak);

  const bool cautious_;
  Bytes peak_;
  Bytes last_peak_, highest_peak_;
  std::optional<absl::Time> began_;
  absl::Duration waited_before_;
  Totals totals_;
  std::optional<Need> told_;
  absl::Time told_at_;
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_METER_H_
