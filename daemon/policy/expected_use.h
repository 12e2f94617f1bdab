// What policies expect of a buffer's next use.
#ifndef METS_DAEMON_POLICY_EXPECTED_USE_H_
#define METS_DAEMON_POLICY_EXPECTED_USE_H_

#include "absl/time/time.h"
#include "daemon/core/victims/victim_policy.h"

namespace mets::policy {

inline bool IsKnown(const core::VictimFacts& facts) {
  return facts.next_use != absl::InfiniteFuture();
}

// Where nothing is known: that it rests as long again as it has rested.
inline absl::Time ExpectedUse(absl::Time now, const core::VictimFacts& facts) {
  return IsKnown(facts) ? facts.next_use : now + (now - facts.last_use);
}

// Key by recency, as of buffers whose next use nobody knows: what was used
// longest ago leaves first.
inline double RecencyKey(const core::VictimFacts& facts) {
  return -absl::ToDoubleSeconds(facts.last_use - absl::UnixEpoch());
}

}  // namespace mets::policy

#endif  // METS_DAEMON_POLICY_EXPECTED_USE_H_
