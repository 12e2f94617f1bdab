// NextUsePolicy: what is not needed for long, and costs little, leaves first.
#ifndef METS_DAEMON_POLICY_NEXT_USE_POLICY_H_
#define METS_DAEMON_POLICY_NEXT_USE_POLICY_H_

#include <string>

#include "daemon/core/victims/victim_policy.h"

namespace mets::policy {

// Score: size × (next use − now) / cost of the copies, in bytes: what it frees,
// for how long, per second of the bus. A clean buffer's way out costs nothing.
// Where the next use is not known, the buffer is expected to rest as long again
// as it has rested: recency. The time to the next use is that of Belady's rule
// (A study of replacement algorithms for a virtual-storage computer, 1966), the
// quotient that of GreedyDual-Size (Cao and Irani, 1997).
class NextUsePolicy : public core::VictimPolicy {
 public:
  std::string name() const override;
  double Key(const core::VictimFacts& facts) const override;
  double Score(absl::Time now, const core::VictimFacts& facts) const override;
};

}  // namespace mets::policy

#endif  // METS_DAEMON_POLICY_NEXT_USE_POLICY_H_
