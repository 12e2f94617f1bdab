#include "client/src/step_meter.h"

#include <algorithm>
#include <utility>

namespace mets::client {
namespace {

constexpr absl::Duration kToldEvery = absl::Milliseconds(100);

bool Differ(Bytes a, Bytes b, Bytes peak) {
  return std::max(a - b, b - a) * 20 > peak;
}

bool Differ(absl::Duration a, absl::Duration b) {
  return std::max(a - b, b - a) * 4 > std::max(a, b);
}

}  // namespace

std::optional<StepMeter::Need> StepMeter::StepEnds(absl::Time now, Bytes live,
                                                   absl::Duration waited) {
  const std::optional<absl::Time> began = std::exchange(began_, now);
  const absl::Duration waited_before = std::exchange(waited_before_, waited);
  Need need;
  need.peak = std::max(std::exchange(peak_, live), live);
  need.persistent = live;
  if (!began.has_value() || need.peak.is_zero()) return std::nullopt;
  need.step =
      std::max(absl::Microseconds(1), now - *began - (waited - waited_before));
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

}  // namespace mets::client
