// LruPolicy: what was used longest ago leaves first.
#ifndef METS_DAEMON_POLICY_LRU_POLICY_H_
#define METS_DAEMON_POLICY_LRU_POLICY_H_

#include <string>
#include <vector>

#include "daemon/core/victim_policy.h"

namespace mets::policy {

// Least recently used. Among buffers last used at the same time: those that
// leave without a copy, then the larger, then by session and buffer.
class LruPolicy : public core::VictimPolicy {
 public:
  std::string name() const override;
  void Rank(absl::Time now,
            std::vector<core::VictimCandidate>* candidates) const override;
};

}  // namespace mets::policy

#endif  // METS_DAEMON_POLICY_LRU_POLICY_H_
