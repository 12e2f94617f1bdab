// When a step's need has changed enough to be told again.
#ifndef METS_COMMON_STEPS_STEP_CHANGE_H_
#define METS_COMMON_STEPS_STEP_CHANGE_H_

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::steps {

// By more than 5 % of the peak.
inline bool Differ(Bytes a, Bytes b, Bytes peak) {
  return std::max(a - b, b - a) * 20 > peak;
}

// By more than a quarter of the larger.
inline bool Differ(absl::Duration a, absl::Duration b) {
  return std::max(a - b, b - a) * 4 > std::max(a, b);
}

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_CHANGE_H_
