#include "daemon/core/costs/step_pace.h"

#include <algorithm>
#include <vector>

namespace mets::core {
namespace {

void Append(absl::Duration value, size_t most,
            std::deque<absl::Duration>* values) {
  values->push_back(value);
  if (values->size() > most) values->pop_front();
}

absl::Duration Median(const std::deque<absl::Duration>& values) {
  if (values.empty()) return absl::ZeroDuration();
  std::vector<absl::Duration> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

void StepPace::Add(const Steps& steps) {
  if (steps.count <= 0 || steps.time <= absl::ZeroDuration()) return;
  if (steps.signature != 0 && steps.signature != signature_) {
    if (signature_ != 0) *this = StepPace();
    signature_ = steps.signature;
  }
  Append(steps.time / steps.count, kRecent, &recent_);
  const absl::Duration computed =
      std::max(steps.time - steps.wait, absl::ZeroDuration()) / steps.count;
  Append(computed, kSamples, steps.alone ? &alone_ : &computing_);
}

absl::Duration StepPace::uncontended() const {
  return Median(alone_.empty() ? computing_ : alone_);
}

absl::Duration StepPace::recent() const { return Median(recent_); }

double StepPace::slowdown() const {
  const absl::Duration alone = uncontended();
  if (alone <= absl::ZeroDuration()) return 0;
  return std::max(1.0, absl::FDivDuration(recent(), alone));
}

}  // namespace mets::core
