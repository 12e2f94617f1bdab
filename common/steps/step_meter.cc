#include "common/steps/step_meter.h"

#include <algorithm>
#include <utility>

#include "common/steps/step_change.h"

namespace mets::steps {
namespace {

constexpr absl::Duration kToldEvery = absl::Milliseconds(100);

}  // namespace

bool StepMeter::Unsettled(Bytes peak) {
  const Bytes last = std::exchange(last_peak_, peak);
  highest_peak_ = std::max(highest_peak_, peak);
  return !told_.has_value() && Differ(last, peak, peak);
}

void StepMeter::Count(absl::Duration time, absl::Duration wait) {
  ++totals_.steps;
  // The clock may have been set back.
  totals_.time += std::max(time, wait);
  totals_.wait += wait;
}

std::optional<StepMeter::Need> StepMeter::StepEnds(absl::Time now, Bytes live,
                                                   absl::Duration waited) {
  const std::optional<absl::Time> began = std::exchange(began_, now);
  const absl::Duration wait = waited - std::exchange(waited_before_, waited);
  if (began.has_value()) Count(now - *began, wait);
  Need need;
  need.peak = std::max(std::exchange(peak_, live), live);
  need.persistent = live;
  if (!began.has_value() || need.peak.is_zero()) return std::nullopt;
  if (cautious_ && Unsettled(need.peak)) return std::nullopt;
  need.peak = std::max(need.peak, highest_peak_);
  need.step = std::max(absl::Microseconds(1), now - *began - wait);
  if (told_.has_value()) {
    const bool peak = Differ(told_->peak, need.peak, need.peak);
    if (!peak && !Differ(told_->persistent, need.persistent, need.peak) &&
        !Differ(told_->step, need.step)) {
      return std::nullopt;
    }
    const bool grown = peak && need.peak > told_->peak;
    if (!grown && now - told_at_ < kToldEvery) return std::nullopt;
  }
  told_ = need;
  told_at_ = now;
  return need;
}

}  // namespace mets::steps
