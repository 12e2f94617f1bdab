// The four scores of AutoSwap: what stays away longest and largest leaves
// first.
//
// Zhang et al., "Efficient Memory Management for GPU-based Deep Learning
// Systems", 2019 (arXiv 1903.06631). There they choose, once, which variables
// of a training's step are swapped; here the same scores compare buffers of all
// sessions at any time. Where the next use is not known, a buffer is expected
// to rest as long again as it has rested.
#ifndef METS_DAEMON_POLICY_ABSENCE_POLICIES_H_
#define METS_DAEMON_POLICY_ABSENCE_POLICIES_H_

#include <string>

#include "daemon/core/victims/victim_policy.h"

namespace mets::policy {

// A score that does not change with time where the next use is known.
class AbsencePolicyBase : public core::VictimPolicy {
 public:
  // The score where it does not change; else recency.
  double Key(const core::VictimFacts& facts) const final;
};

// Duration of absence (DOA): next use − last use − time of the copies; in
// seconds. Below zero: it cannot be away and back in time.
class AbsencePolicy : public AbsencePolicyBase {
 public:
  std::string name() const override;
  double Score(absl::Time now, const core::VictimFacts& facts) const override;
};

// Area of absence (AOA): size × duration of absence, in byte seconds.
class AbsenceAreaPolicy : public AbsencePolicyBase {
 public:
  std::string name() const override;
  double Score(absl::Time now, const core::VictimFacts& facts) const override;
};

// Weighted duration of absence (WDOA): the area between the curve of live bytes
// and the device's memory during the absence, in byte seconds: an absence
// counts while memory is short. Where no curve is known: the area of absence.
class WeightedAbsenceAreaPolicy : public AbsencePolicyBase {
 public:
  std::string name() const override;
  double Score(absl::Time now, const core::VictimFacts& facts) const override;
};

// The vote of the three. There each ranks all variables and the ranks are
// added. A rank depends on all others; what depends on one buffer alone and
// orders alike is the logarithm, the rank among scores that spread evenly over
// orders of magnitude. So: f(DOA) + f(AOA) + f(WDOA) with f(x) = sign(x) ×
// ln(1 + |x| × 10^6), that is, in microseconds and byte microseconds. It grows
// with each of the three.
class AbsenceVotePolicy : public AbsencePolicyBase {
 public:
  std::string name() const override;
  double Score(absl::Time now, const core::VictimFacts& facts) const override;
};

}  // namespace mets::policy

#endif  // METS_DAEMON_POLICY_ABSENCE_POLICIES_H_
