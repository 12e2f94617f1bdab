// LruPolicy: what was used longest ago leaves first.
#ifndef METS_DAEMON_POLICY_LRU_POLICY_H_
#define METS_DAEMON_POLICY_LRU_POLICY_H_

#include <string>

#include "daemon/core/victims/victim_policy.h"

namespace mets::policy {

// Score: time since the last use, in seconds.
class LruPolicy : public core::VictimPolicy {
 public:
  std::string name() const override;
  double Key(const core::VictimFacts& facts) const override;
  double Score(absl::Time now, const core::VictimFacts& facts) const override;
};

}  // namespace mets::policy

#endif  // METS_DAEMON_POLICY_LRU_POLICY_H_
