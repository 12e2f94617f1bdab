// BeladyPolicy: the farthest next use leaves first; a reference for the
// simulator, which knows all uses.
#ifndef METS_DAEMON_POLICY_BELADY_POLICY_H_
#define METS_DAEMON_POLICY_BELADY_POLICY_H_

#include <string>

#include "daemon/core/victims/victim_policy.h"

namespace mets::policy {

// Score: time until the next use, in seconds; what is never used again leaves
// first of all (Belady, A study of replacement algorithms for a virtual-storage
// computer, 1966). No bound: sizes differ, and clean copies are free.
class BeladyPolicy : public core::VictimPolicy {
 public:
  std::string name() const override;
  double Key(const core::VictimFacts& facts) const override;
  double Score(absl::Time now, const core::VictimFacts& facts) const override;
};

}  // namespace mets::policy

#endif  // METS_DAEMON_POLICY_BELADY_POLICY_H_
