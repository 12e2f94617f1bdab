// Allowance: how many events may be taken now.
#ifndef METS_DAEMON_APP_DECISIONS_ALLOWANCE_H_
#define METS_DAEMON_APP_DECISIONS_ALLOWANCE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace mets::app {

// A token bucket: `burst` at first, and `per_second` more with time, at most
// `burst` again. Not thread-safe.
class Allowance {
 public:
  Allowance(double per_second, double burst)
      : per_second_(per_second), burst_(burst), left_(burst) {}

  // Whether one more may be taken at `time`, which may go back.
  bool Take(absl::Time time) {
    if (since_ != absl::InfinitePast() && time > since_) {
      left_ = std::min(
          burst_, left_ + per_second_ * absl::ToDoubleSeconds(time - since_));
    }
    since_ = std::max(since_, time);
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  double per_second_, burst_, left_;
  absl::Time since_ = absl::InfinitePast();
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_DECISIONS_ALLOWANCE_H_
